#pragma once

// Where a generation goes when it answers an HTTP request: as a stream of events, or whole.
//
// Thread rule of TokenSink: one thread at a time. The status line is held back until OnAccepted, so
// an error before it has its true HTTP status; a later one is an event, and ends the stream.

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "server/http/response_writer.h"
#include "server/openai/answer_format.h"
#include "server/serving/generate.h"

namespace hexad {

class StreamSink final : public TokenSink {
 public:
  StreamSink(AnswerIdentity identity, int32_t num_choices, absl::Duration keep_alive,
             ResponseWriter writer);

  void OnAccepted(int32_t prompt_tokens) override;
  void OnDelta(int32_t choice, TextDelta delta) override;
  void OnFinish(int32_t choice, FinishReason reason) override;
  void OnEnd(const absl::Status& status, const Usage& usage) override;

 private:
  struct Choice {
    bool begun = false;
    bool finished = false;
    int64_t characters = 0;
  };

  Choice* Begin(int32_t choice);  // nullptr: no such choice, or it has finished

  const AnswerFormat format_;
  const absl::Duration keep_alive_;
  ResponseWriter writer_;
  std::vector<Choice> choices_;
  bool accepted_ = false;
};

class WholeSink final : public TokenSink {
 public:
  WholeSink(AnswerIdentity identity, int32_t num_choices, ResponseWriter writer);

  void OnAccepted(int32_t prompt_tokens) override;
  void OnDelta(int32_t choice, TextDelta delta) override;
  void OnFinish(int32_t choice, FinishReason reason) override;
  void OnEnd(const absl::Status& status, const Usage& usage) override;

 private:
  const AnswerFormat format_;
  ResponseWriter writer_;
  std::vector<ChoiceAnswer> choices_;
};

}  // namespace hexad
