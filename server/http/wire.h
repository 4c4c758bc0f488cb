#pragma once

// Pieces of HTTP/1.1 on the wire that need no socket: response heads, chunks, small parsers.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace hexad {

std::string_view ReasonPhrase(int status);

enum class BodyFraming : uint8_t { kLength, kChunked, kUntilClose };

struct ResponseHead {
  int status = 200;
  std::string_view content_type;
  const HttpHeaders* headers = nullptr;
  std::string_view request_id;
  BodyFraming framing = BodyFraming::kLength;
  size_t length = 0;
  bool keep_alive = true;
};

// Status line and headers with the empty line. CR, LF and NUL in values are dropped.
std::string FormatHead(const ResponseHead& head, absl::Time now);

// "1f\r\n" and so on; the chunk's bytes and "\r\n" follow it.
std::string ChunkHeader(size_t size);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Splits a request target, absolute form included, into path and query.
void SplitTarget(std::string_view target, std::string* path, std::string* query);

// An id that may be echoed and logged: 1 to 128 visible ASCII characters.
bool IsSaneRequestId(std::string_view id);

// True for application/json with or without parameters, in any case.
bool IsJsonContentType(std::string_view value);

}  // namespace hexad
