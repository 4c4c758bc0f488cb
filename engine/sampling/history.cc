#include "engine/sampling/history.h"

namespace hexad {

TokenHistory::TokenHistory(const SamplingParams& params, std::span<const TokenId> prompt,
                           std::span<const TokenId> output)
    : counting_(params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
                params.frequency_penalty != 0.0f) {
  if (counting_) {
    for (const TokenId token : prompt) counts_[token].in_prompt = true;
  }
  for (const TokenId token : output) AddOutput(token);
}

void TokenHistory::AddOutput(TokenId token) {
  ++output_tokens_;
  if (counting_) ++counts_[token].in_output;
}

}  // namespace hexad
