#pragma once

// How well a model predicts a text: the plainest measure of whether weights, quantisation and
// arithmetic are right, and comparable with other engines on the same tokens.

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "engine/models/model_file.h"
#include "kernels/types.h"
#include "kvcache/core/types.h"

namespace hexad {

struct PerplexityOptions {
  int threads = 1;
  DType kv_type = DType::kF16;
  Activations activations = Activations::kInt8;
  int32_t chunk_tokens = 256;
};

struct PerplexityResult {
  int64_t predicted = 0;             // tokens[1..], each given all before it
  double mean_negative_logprob = 0;  // natural logarithm
  double perplexity = 0;             // exp of that
};

// One sequence, from its first token on. InvalidArgument when there are fewer than two tokens, more
// than the model's context holds, or ids outside the vocabulary.
absl::StatusOr<PerplexityResult> MeasurePerplexity(std::shared_ptr<const ModelFile> model,
                                                   std::span<const TokenId> tokens,
                                                   const PerplexityOptions& options);

}  // namespace hexad
