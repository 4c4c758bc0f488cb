#pragma once

// What a replica is asked to generate, and what it answers: plain values.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "kvcache/core/types.h"
#include "scheduler/step/ids.h"

namespace hexad {

// Sampling is a function of (logits, history, seed, position) and of nothing else, so batching,
// chunking, preemption and failover cannot change a token. Ranges are validated at the front end.
struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy; ties go to the lowest token id
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // 1: off
  float min_p = 0.0f;               // 0: off
  float repetition_penalty = 1.0f;  // over prompt and output
  float presence_penalty = 0.0f;    // over output
  float frequency_penalty = 0.0f;   // over output
  uint64_t seed = 0;
  int32_t num_logprobs = -1;  // -1: none; n: the sampled token's and the n most likely ones'
  std::vector<std::pair<TokenId, float>> logit_bias;
};

struct StopRules {
  int32_t max_new_tokens = 16;
  int32_t min_new_tokens = 0;        // end-of-sequence tokens are masked until then
  std::vector<TokenId> stop_tokens;  // end of sequence and the client's own; not emitted
  bool ignore_end_of_sequence = false;
};

struct RequestSpec {
  RequestId id{};
  // Kept apart so that penalties, min_new_tokens, usage and grammar state survive a failover:
  // the request has been answered up to the end of resumed_output already.
  std::vector<TokenId> prompt;
  std::vector<TokenId> resumed_output;
  // Content keys of the full units of prompt + resumed_output, made once at the front end, and
  // the root they hang from (model, adapter, tenant), from which keys of new tokens continue.
  std::vector<ContentKey> unit_keys;
  ContentKey root_key;
  SamplingParams sampling;
  StopRules stop;
  double rank = 0;  // the planner's order: low runs first, high is preempted first
  absl::Time arrival;
};

enum class FinishReason : uint8_t { kStop, kLength, kCancelled, kFailed };

struct TokenLogprob {
  TokenId token{};
  float logprob = 0;
};

struct SampledToken {
  TokenId token{};
  float logprob = 0;                       // of `token`, when asked for
  std::vector<TokenLogprob> top_logprobs;  // descending
};

// What the batcher tells the emitter, in order per request; kFinished is the last one.
struct TokenEvent {
  enum class Kind : uint8_t { kTokens, kFinished };
  Kind kind = Kind::kTokens;
  RequestId request{};
  std::vector<SampledToken> tokens;  // kTokens
  FinishReason reason{};             // kFinished, and all below
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // prompt tokens not computed at first admission; counted once
  int32_t output_tokens = 0;
  absl::Time first_scheduled = absl::InfinitePast();  // its first row was planned; else never
};

}  // namespace hexad
