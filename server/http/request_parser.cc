#include "server/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "server/http/wire.h"

namespace hexad {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct RequestParser::Impl {
  http::request_parser<http::empty_body> parser;  // of the header; bodies are read here
};

RequestParser::RequestParser(size_t max_header_bytes, size_t max_body_bytes)
    : max_header_bytes_(max_header_bytes),
      max_body_bytes_(max_body_bytes),
      impl_(std::make_unique<Impl>()) {
  // Both limits are this class's own.
  impl_->parser.header_limit(static_cast<std::uint32_t>(max_header_bytes) + 1);
  impl_->parser.body_limit(boost::none);
}

RequestParser::~RequestParser() = default;

RequestParser::State RequestParser::Fail(int status, std::string message) {
  error_ =
      HttpError{.status = status, .type = "invalid_request_error", .message = std::move(message)};
  return State::kFailed;
}

HttpRequest RequestParser::TakeRequest() { return std::move(request_); }

RequestParser::State RequestParser::Feed(std::string_view input, size_t* consumed) {
  *consumed = 0;
  if (header_done_) return FeedBody(input, consumed);
  // Clients may send an empty line after an earlier body (RFC 9112, 2.2).
  while (*consumed < input.size() && (input[*consumed] == '\r' || input[*consumed] == '\n')) {
    ++*consumed;
  }
  input.remove_prefix(*consumed);
  if (input.empty()) return State::kNeedMore;
  if (!absl::ascii_isalpha(static_cast<unsigned char>(input[0]))) {
    return Fail(400, "This is no HTTP request; the port speaks HTTP/1.1 without TLS.");
  }
  // Beast parses whole headers only, so it is called once there is one. The search goes on where
  // it ended, three bytes back.
  const size_t end = input.find("\r\n\r\n", searched_ < 3 ? 0 : searched_ - 3);
  searched_ = input.size();
  if (end == std::string_view::npos ? input.size() > max_header_bytes_
                                    : end + 4 > max_header_bytes_) {
    return Fail(431,
                absl::StrFormat("The request header is larger than %d bytes.", max_header_bytes_));
  }
  if (end == std::string_view::npos) return State::kNeedMore;
  beast::error_code error;
  impl_->parser.put(boost::asio::const_buffer(input.data(), end + 4), error);
  if (error == http::error::bad_version) {
    return Fail(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
  }
  if (!impl_->parser.is_header_done()) {
    return Fail(400, "Malformed HTTP request: " + error.message() + ".");
  }
  *consumed += end + 4;
  header_done_ = true;
  return ReadHeader() ? State::kHeaderDone : State::kFailed;
}

RequestParser::State RequestParser::FeedBody(std::string_view input, size_t* consumed) {
  if (!chunks_.has_value()) {
    const size_t take = std::min(input.size(), length_ - request_.body.size());
    request_.body.append(input.substr(0, take));
    *consumed = take;
    return request_.body.size() == length_ ? State::kDone : State::kNeedMore;
  }
  switch (chunks_->Feed(input, consumed, &request_.body)) {
    case ChunkedDecoder::State::kNeedMore:
      return State::kNeedMore;
    case ChunkedDecoder::State::kDone:
      return State::kDone;
    case ChunkedDecoder::State::kMalformed:
      return Fail(400, "Malformed chunked request body.");
    case ChunkedDecoder::State::kTooLarge:
      break;
  }
  return FailTooLarge();
}

RequestParser::State RequestParser::FailTooLarge() {
  return Fail(413, absl::StrFormat("The request body is larger than %d bytes.", max_body_bytes_));
}

bool RequestParser::ReadHeader() {
  const auto& message = impl_->parser.get();
  request_.method = View(message.method_string());
  request_.target = View(message.target());
  SplitTarget(request_.target, &request_.path, &request_.query);
  for (const auto& field : message) {
    std::string name = absl::AsciiStrToLower(
        absl::string_view(field.name_string().data(), field.name_string().size()));
    request_.headers.emplace_back(std::move(name), View(field.value()));
  }
  request_.keep_alive = impl_->parser.keep_alive();
  request_.is_http_1_0 = message.version() == 10;
  if (message.version() != 10 && message.version() != 11) {
    Fail(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
    return false;
  }
  const auto count = [this](std::string_view name) {
    return std::count_if(request_.headers.begin(), request_.headers.end(),
                         [name](const auto& header) { return header.first == name; });
  };
  const auto host_count = count("host");
  if (host_count > 1 || (host_count == 0 && !request_.is_http_1_0)) {
    Fail(400, "An HTTP/1.1 request needs exactly one Host header.");
    return false;
  }
  // A coding that is not understood would leave the end of the body to guesses, and requests could
  // be smuggled in it.
  if (count("transfer-encoding") > 0) {
    const std::string coding(request_.Header("transfer-encoding"));
    if (request_.is_http_1_0 || !absl::EqualsIgnoreCase(coding, "chunked")) {
      Fail(501, "The only transfer coding supported is chunked, with HTTP/1.1.");
      return false;
    }
    chunks_.emplace(max_body_bytes_);
  } else if (const auto length = impl_->parser.content_length(); length.has_value()) {
    if (*length > max_body_bytes_) {
      FailTooLarge();
      return false;
    }
    length_ = static_cast<size_t>(*length);
  }
  const std::string encoding(request_.Header("content-encoding"));
  if (!encoding.empty() && !absl::EqualsIgnoreCase(encoding, "identity")) {
    Fail(415, "Request bodies must not be compressed.");
    return false;
  }
  if (count("expect") > 0 && !request_.is_http_1_0) {
    if (!absl::EqualsIgnoreCase(std::string(request_.Header("expect")), "100-continue")) {
      Fail(417, "The only expectation supported is 100-continue.");
      return false;
    }
    expects_continue_ = has_body();
  }
  return true;
}

}  // namespace hexad
