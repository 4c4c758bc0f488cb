// The HTTP request parser: any bytes, in any splits, give the same request or the same refusal.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/request_parser.h"

namespace {

using hexad::RequestParser;

struct Result {
  RequestParser::State state = RequestParser::State::kNeedMore;
  int status = 0;
  std::string path, body;

  bool operator==(const Result&) const = default;
};

Result Parse(std::string_view input, size_t step) {
  RequestParser parser(/*max_header_bytes=*/1024, /*max_body_bytes=*/4096);
  std::string buffer;
  Result result;
  for (;;) {
    size_t consumed = 0;
    result.state = parser.Feed(buffer, &consumed);
    if (consumed > buffer.size()) abort();
    buffer.erase(0, consumed);
    if (result.state == RequestParser::State::kDone) {
      const hexad::HttpRequest request = parser.TakeRequest();
      if (request.body.size() > 4096) abort();
      result.path = request.path;
      result.body = request.body;
      return result;
    }
    if (result.state == RequestParser::State::kFailed) {
      result.status = parser.error().status;
      return result;
    }
    if (result.state == RequestParser::State::kHeaderDone) continue;
    if (input.empty()) return result;
    const size_t size = std::min(step, input.size());
    buffer.append(input.substr(0, size));
    input.remove_prefix(size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = data[0] % 16 + 1;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Result whole = Parse(input, input.size());
  const Result split = Parse(input, step);
  // A header that is too large in one piece may be malformed before the limit in small ones.
  if (whole.status != 431 && split.status != 431 && !(whole == split)) abort();
  return 0;
}
