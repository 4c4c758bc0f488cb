#include "server/serving/emitter.h"

#include <algorithm>
#include <utility>

namespace hexad {
namespace {

double Seconds(absl::Time from, absl::Time to) { return absl::ToDoubleSeconds(to - from); }

TextLogprob ToText(const Tokenizer& tokenizer, const SampledToken& sampled) {
  TextLogprob logprob;
  logprob.bytes = tokenizer.TokenBytes(sampled.token, /*render_special=*/true);
  logprob.logprob = sampled.logprob;
  for (const TokenLogprob& top : sampled.top_logprobs) {
    logprob.top.emplace_back(tokenizer.TokenBytes(top.token, /*render_special=*/true), top.logprob);
  }
  return logprob;
}

}  // namespace

Emitter::Choice::Choice(const CallState& call, std::vector<std::string> stop_strings)
    : decoder(*call.model->tokenizer), stops(std::move(stop_strings)) {}

Emitter::Emitter(Hooks hooks, ModelMetrics& metrics)
    : hooks_(std::move(hooks)), metrics_(metrics), thread_([this] { Run(); }) {}

Emitter::~Emitter() {
  mailbox_.Close();
  thread_.join();
}

void Emitter::Register(std::shared_ptr<CallState> call) { mailbox_.Post(std::move(call)); }
void Emitter::Emit(std::vector<TokenEvent> events, absl::Time now) {
  mailbox_.Post(Batch{std::move(events), now});
}

void Emitter::Run() {
  std::vector<Message> messages;
  while (mailbox_.Take(&messages)) {
    for (Message& message : messages) {
      if (auto* state = std::get_if<std::shared_ptr<CallState>>(&message)) {
        Accept(std::move(*state));
        continue;
      }
      const Batch& batch = std::get<Batch>(message);
      for (const TokenEvent& event : batch.events) OnEvent(event, batch.now);
    }
  }
}

void Emitter::Accept(std::shared_ptr<CallState> state) {
  Call call;
  call.live_choices = state->call.num_choices;
  for (int32_t i = 0; i < call.live_choices; ++i) {
    call.choices.push_back(std::make_unique<Choice>(*state, state->call.stop_strings));
  }
  call.usage.prompt_tokens = state->prompt_tokens;
  state->sink->OnAccepted(state->prompt_tokens);
  const CallId id = state->id;
  call.state = std::move(state);
  calls_.emplace(id, std::move(call));
}

void Emitter::OnEvent(const TokenEvent& event, absl::Time now) {
  const auto it = calls_.find(CallOf(event.request));
  if (it == calls_.end()) return;
  if (event.kind == TokenEvent::Kind::kTokens) {
    OnTokens(it->second, event, now);
    return;
  }
  OnFinished(it->second, event, now);
  if (it->second.live_choices > 0) return;
  EndCall(it->second);
  calls_.erase(it);
}

void Emitter::OnTokens(Call& call, const TokenEvent& event, absl::Time now) {
  const int32_t index = ChoiceOf(event.request);
  Choice& choice = *call.choices[index];
  if (choice.stopped || choice.finished) return;
  const CallState& state = *call.state;
  if (choice.output_tokens == 0) {
    choice.first_token = now;
    metrics_.OnFirstToken(Seconds(state.arrival, now));
  } else {
    metrics_.OnInterToken(Seconds(choice.last_token, now));
  }
  choice.last_token = now;

  std::string text;
  const int32_t before = choice.output_tokens;
  for (const SampledToken& sampled : event.tokens) {
    ++choice.output_tokens;
    choice.pending.tokens.push_back(sampled.token);
    if (state.call.sampling.num_logprobs >= 0) {
      choice.pending.logprobs.push_back(ToText(*state.model->tokenizer, sampled));
    }
    StopMatcher::Result result = choice.stops.Push(choice.decoder.Push(sampled.token));
    text += result.text;
    if (result.stopped) {
      choice.stopped = true;
      hooks_.stop_at(event.request, choice.output_tokens);
      break;
    }
  }
  metrics_.OnGenerated(choice.output_tokens - before);
  if (!text.empty()) Send(call, index, std::move(text));
}

void Emitter::Send(Call& call, int32_t index, std::string text) {
  TextDelta delta = std::exchange(call.choices[index]->pending, {});
  delta.text = std::move(text);
  call.state->sink->OnDelta(index, std::move(delta));
}

void Emitter::OnFinished(Call& call, const TokenEvent& event, absl::Time now) {
  const int32_t index = ChoiceOf(event.request);
  Choice& choice = *call.choices[index];
  if (choice.finished) return;
  choice.finished = true;
  --call.live_choices;

  const bool complete =
      event.reason == FinishReason::kStop || event.reason == FinishReason::kLength;
  if (complete) {
    std::string rest;
    if (!choice.stopped) {
      StopMatcher::Result last = choice.stops.Push(choice.decoder.Flush());
      rest = std::move(last.text);
      if (!last.stopped) rest += choice.stops.Flush();
    }
    // Tokens without text of their own, such as half a character, are part of the answer too.
    const bool tokens_left = !choice.stopped && !choice.pending.tokens.empty();
    if (!rest.empty() || tokens_left) Send(call, index, std::move(rest));
    call.state->sink->OnFinish(index, choice.stopped ? FinishReason::kStop : event.reason);
  }
  call.worst = std::max(call.worst, event.reason);
  if (index == 0) call.usage.cached_tokens = event.cached_tokens;
  call.usage.completion_tokens += event.output_tokens;
  metrics_.OnGenerated(event.output_tokens - choice.output_tokens);  // those without text

  RequestMetrics request;
  request.reason = event.reason;
  request.prompt_tokens = event.prompt_tokens;
  request.cached_tokens = event.cached_tokens;
  request.output_tokens = event.output_tokens;
  request.num_choices = call.state->call.num_choices;
  request.max_tokens = call.state->call.max_new_tokens;
  request.e2e_seconds = Seconds(call.state->arrival, now);
  if (event.first_scheduled != absl::InfinitePast()) {
    request.queue_seconds = Seconds(call.state->arrival, event.first_scheduled);
    if (choice.output_tokens > 0) {
      request.prefill_seconds = Seconds(event.first_scheduled, choice.first_token);
      request.decode_seconds = Seconds(choice.first_token, choice.last_token);
      request.inference_seconds = Seconds(event.first_scheduled, choice.last_token);
    }
  }
  metrics_.OnRequestDone(request);
}

void Emitter::EndCall(Call& call) {
  absl::Status status;
  if (call.worst == FinishReason::kCancelled) status = CancelStatus(*call.state);
  if (call.worst == FinishReason::kFailed) {
    status = absl::InternalError("the engine could not compute this request");
  }
  call.state->sink->OnEnd(status, call.usage);
  const Usage& usage = call.usage;
  hooks_.call_done({.call = call.state->id,
                    .reason = call.worst,
                    .output_tokens = usage.completion_tokens,
                    .tenant = call.state->call.tenant,
                    .uncached_tokens = int64_t{usage.prompt_tokens} - usage.cached_tokens +
                                       usage.completion_tokens});
}

}  // namespace hexad
