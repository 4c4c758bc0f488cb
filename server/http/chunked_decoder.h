#pragma once

// Decodes a chunked body (RFC 9112, 7.1), byte by byte where it must, strictly: CRLF line ends,
// hexadecimal sizes without signs or spaces. Extensions and trailers are skipped. Beast's own
// decoder asserts on some splits of the last chunk ("0\r\n", then one byte), which a client
// chooses.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hexad {

class ChunkedDecoder final {
 public:
  enum class State : uint8_t { kNeedMore, kDone, kMalformed, kTooLarge };

  explicit ChunkedDecoder(size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  // Appends decoded bytes to *body and sets *consumed. All of `input` is consumed unless the body
  // ends or fails before.
  State Feed(std::string_view input, size_t* consumed, std::string* body);

 private:
  enum class Part : uint8_t {
    kSize,
    kExtension,
    kSizeEnd,  // the line feed after a size
    kData,
    kDataEnd,       // CR
    kDataLineFeed,  // LF
    kTrailerStart,
    kTrailer,
    kTrailerLineFeed,
    kLastLineFeed,
  };

  State OnByte(char byte);

  const size_t max_body_bytes_;
  Part part_ = Part::kSize;
  uint64_t size_ = 0;  // of the chunk, then what is left of it
  int size_digits_ = 0;
  size_t body_bytes_ = 0;
  size_t skipped_bytes_ = 0;  // extensions and trailers of the whole body, bounded
};

}  // namespace hexad
