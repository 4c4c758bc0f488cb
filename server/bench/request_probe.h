#pragma once

// Watches one answer arrive and measures it. Times are seconds on the caller's clock, passed in.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/client/chat_stream.h"
#include "server/client/http_client.h"
#include "server/client/sse_parser.h"

namespace hexad {

struct RequestRecord {
  double start = 0;        // when it should have gone out
  double first_token = 0;  // streams only
  double end = 0;
  std::vector<float> gaps;  // between pieces of text, seconds
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  bool counted_by_usage = false;  // else output_tokens is the number of pieces of text
  bool streamed = false;
  std::string error_kind;  // empty: it went well. Else "connect", "timeout", "http_429",
                           // "broken_stream", "error_in_stream", "bad_answer", "aborted"
  std::string error_detail;
};

class RequestProbe final {
 public:
  RequestProbe(double start, bool stream) : stream_(stream) {
    record_.start = start;
    record_.streamed = stream;
  }
  // False: the answer is beyond repair, end the transfer.
  bool OnBody(long status, std::string_view bytes, double now);
  RequestRecord Finish(const HttpOutcome& outcome, double now);

 private:
  void OnPiece(const ChatPiece& piece, double now);
  void Fail(std::string kind, std::string detail);

  bool stream_;
  RequestRecord record_;
  ChatDecoder decoder_;
  SseParser parser_;
  std::string body_;
  double last_text_ = 0;
  int64_t pieces_ = 0;
  bool done_ = false;
  bool finished_ = false;  // a finish reason came
};

}  // namespace hexad
