#pragma once

// Bytes to one HTTP/1.x request, incrementally. One parser a message. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/chunked_decoder.h"
#include "server/http/http_message.h"

namespace hexad {

class RequestParser final {
 public:
  enum class State : uint8_t {
    kNeedMore,
    kHeaderDone,  // once, before the first byte of the body; method, target and headers are known
    kDone,
    kFailed,
  };

  RequestParser(size_t max_header_bytes, size_t max_body_bytes);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Sets *consumed to the bytes of `input` that are used up; the caller passes the rest again, with
  // what follows it. Memory grows with bytes received, never with a length that was announced.
  State Feed(std::string_view input, size_t* consumed);

  // After kHeaderDone, until TakeRequest. Complete after kDone, but for peer, parameter,
  // request_id.
  const HttpRequest& request() const { return request_; }
  HttpRequest TakeRequest();

  bool has_body() const { return chunks_.has_value() || length_ > 0; }  // after kHeaderDone
  bool expects_continue() const { return expects_continue_; }
  size_t body_bytes() const { return request_.body.size(); }  // received so far
  const HttpError& error() const { return error_; }           // after kFailed

 private:
  struct Impl;

  bool ReadHeader();
  State FeedBody(std::string_view input, size_t* consumed);
  State FailTooLarge();
  State Fail(int status, std::string message);

  const size_t max_header_bytes_;
  const size_t max_body_bytes_;
  std::unique_ptr<Impl> impl_;
  HttpRequest request_;
  HttpError error_;
  size_t searched_ = 0;  // bytes of the header without its end
  size_t length_ = 0;    // of the body, announced
  std::optional<ChunkedDecoder> chunks_;
  bool header_done_ = false;
  bool expects_continue_ = false;
};

}  // namespace hexad
