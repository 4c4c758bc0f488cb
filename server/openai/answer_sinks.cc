#include "server/openai/answer_sinks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/tokenizer/utf8.h"
#include "server/http/http_message.h"

namespace hexad {
namespace {

bool IsRegular(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength;
}

// A call that ended without an error, yet with choices that did not: our own fault.
absl::Status Unfinished() { return absl::InternalError("a choice ended without a finish reason"); }

}  // namespace

StreamSink::StreamSink(AnswerIdentity identity, int32_t num_choices, absl::Duration keep_alive,
                       ResponseWriter writer)
    : format_(std::move(identity)),
      keep_alive_(keep_alive),
      writer_(std::move(writer)),
      choices_(static_cast<size_t>(num_choices)) {}

void StreamSink::OnAccepted(int32_t) {
  accepted_ = true;
  StreamHead head;
  head.headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}};
  head.keep_alive_bytes = ": ping\n\n";
  head.keep_alive_interval = keep_alive_;
  head.stop_bytes = ErrorEvent(ToHttpError(absl::UnavailableError("The server is shutting down.")));
  writer_.BeginStream(std::move(head));
}

StreamSink::Choice* StreamSink::Begin(int32_t choice) {
  const auto index = static_cast<size_t>(choice);
  if (index >= choices_.size() || choices_[index].finished) return nullptr;
  if (!accepted_) OnAccepted(0);
  if (!std::exchange(choices_[index].begun, true)) writer_.Write(format_.FirstChunk(choice));
  return &choices_[index];
}

void StreamSink::OnDelta(int32_t choice, TextDelta delta) {
  Choice* const state = Begin(choice);
  if (state == nullptr) return;
  const bool has_logprobs = format_.identity().with_logprobs && !delta.logprobs.empty();
  const bool has_tokens = format_.identity().with_token_ids && !delta.tokens.empty();
  if (delta.text.empty() && !has_logprobs && !has_tokens) return;
  writer_.Write(format_.DeltaChunk(choice, delta, state->characters));
  state->characters += CountCharacters(delta.text);
}

void StreamSink::OnFinish(int32_t choice, FinishReason reason) {
  if (!IsRegular(reason)) return;  // OnEnd brings the error
  Choice* const state = Begin(choice);
  if (state == nullptr) return;
  state->finished = true;
  writer_.Write(format_.FinishChunk(choice, reason));
}

void StreamSink::OnEnd(const absl::Status& status, const Usage& usage) {
  const bool complete = std::all_of(choices_.begin(), choices_.end(),
                                    [](const Choice& choice) { return choice.finished; });
  const absl::Status result = status.ok() && !complete ? Unfinished() : status;
  if (!accepted_) {
    writer_.Send(ErrorResponse(ToHttpError(result)));
    return;
  }
  if (!result.ok()) {
    writer_.Write(ErrorEvent(ToHttpError(result)));
  } else {
    if (format_.identity().include_usage) writer_.Write(format_.UsageChunk(usage));
    writer_.Write(kStreamDone);
  }
  writer_.Finish();
}

WholeSink::WholeSink(AnswerIdentity identity, int32_t num_choices, ResponseWriter writer)
    : format_(std::move(identity)),
      writer_(std::move(writer)),
      choices_(static_cast<size_t>(num_choices)) {}

void WholeSink::OnAccepted(int32_t) {}

void WholeSink::OnDelta(int32_t choice, TextDelta delta) {
  const auto index = static_cast<size_t>(choice);
  if (index >= choices_.size()) return;
  choices_[index].text += delta.text;
  std::move(delta.logprobs.begin(), delta.logprobs.end(),
            std::back_inserter(choices_[index].logprobs));
  if (!format_.identity().with_token_ids) return;
  std::vector<TokenId>& tokens = choices_[index].tokens;
  tokens.insert(tokens.end(), delta.tokens.begin(), delta.tokens.end());
}

void WholeSink::OnFinish(int32_t choice, FinishReason reason) {
  const auto index = static_cast<size_t>(choice);
  if (index < choices_.size()) choices_[index].reason = reason;
}

void WholeSink::OnEnd(const absl::Status& status, const Usage& usage) {
  const bool complete =
      std::all_of(choices_.begin(), choices_.end(),
                  [](const ChoiceAnswer& choice) { return IsRegular(choice.reason); });
  const absl::Status result = status.ok() && !complete ? Unfinished() : status;
  if (result.ok()) {
    writer_.Send({.body = format_.Whole(choices_, usage)});
  } else {
    writer_.Send(ErrorResponse(ToHttpError(result)));
  }
}

}  // namespace hexad
