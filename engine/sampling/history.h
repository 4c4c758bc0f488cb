#pragma once

// What penalties need to know of the tokens before: counted once, not walked again at every step.

#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "kvcache/core/types.h"
#include "scheduler/step/request.h"

namespace hexad {

class TokenHistory final {
 public:
  struct Count {
    bool in_prompt = false;
    int32_t in_output = 0;
  };

  TokenHistory() = default;
  // `params` says whether there is anything to count: without penalties only lengths are kept.
  TokenHistory(const SamplingParams& params, std::span<const TokenId> prompt,
               std::span<const TokenId> output);

  void AddOutput(TokenId token);

  int32_t output_tokens() const { return output_tokens_; }
  const absl::flat_hash_map<TokenId, Count>& counts() const { return counts_; }

 private:
  bool counting_ = false;
  int32_t output_tokens_ = 0;
  absl::flat_hash_map<TokenId, Count> counts_;
};

}  // namespace hexad
