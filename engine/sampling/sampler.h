#pragma once

// Logits to a token. A pure function of its arguments: no state but scratch memory, so batching,
// chunking, preemption and failover cannot change a token.
//
// Order, as vLLM applies it: logit_bias, the mask of min_new_tokens, penalties (repetition, then
// frequency and presence), temperature, min_p, top_k, top_p, draw. min_p is relative to the most
// likely token; top_p keeps the smallest set of the most likely tokens, among those that are left,
// whose share of the probability that is left reaches it. Equal logits rank by token id, low first.
// A temperature below 1e-5 is greedy.
//
// Log-probabilities are those of the model: log-softmax of the raw logits, before bias, penalties
// and temperature, as OpenAI and vLLM report them. They are never below kLowestLogprob.
//
// A NaN logit counts as impossible; when no token is possible the answer is token 0.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling/history.h"
#include "kvcache/core/types.h"
#include "scheduler/step/request.h"

namespace hexad {

inline constexpr float kLowestLogprob = -9999.0f;  // JSON has no infinity; OpenAI sends this one

struct SamplingContext {
  uint64_t position = 0;                  // in the sequence, of the token to be sampled
  const TokenHistory* history = nullptr;  // null: no tokens before
  int32_t min_new_tokens = 0;
  std::span<const TokenId> masked_until_min;
};

class Sampler final {  // one per thread
 public:
  // Whether Sample would answer with the lowest id of the greatest logit (0 where none is above
  // minus infinity) and nothing else, so that the logits themselves are not needed.
  static bool TakesTheBest(const SamplingParams& params, const SamplingContext& context);

  // `logits` [vocabulary]. REQUIRES: not empty. Ids outside the vocabulary in params or context
  // have no effect.
  SampledToken Sample(std::span<const float> logits, const SamplingParams& params,
                      const SamplingContext& context);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  static bool Before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  std::span<const float> Adjust(std::span<const float> logits, const SamplingParams& params,
                                const SamplingContext& context);
  int32_t Draw(std::span<const float> logits, const SamplingParams& params, uint64_t position);
  int32_t DrawFromAll(std::span<const float> logits, float max, double inverse_temperature,
                      double uniform);
  int32_t DrawFromBest(std::span<const float> logits, float max, double inverse_temperature,
                       const SamplingParams& params, double uniform);
  void FillLogprobs(std::span<const float> logits, int32_t num_logprobs, SampledToken& sampled);

  std::vector<float> adjusted_;
  std::vector<float> weights_;
  std::vector<Candidate> candidates_;
};

}  // namespace hexad
