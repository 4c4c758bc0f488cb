#pragma once

// The seam between an executor, which owns slots and order, and the arithmetic of one device: a
// model with its weights, KV pools and workspace.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kvcache/core/types.h"

namespace hexad {

// Consecutive tokens of one sequence.
struct ForwardSequence {
  int64_t first_position = 0;
  int32_t num_tokens = 0;
  // Asked of the tokens after each of the last num_logits ones; mostly 0 or 1.
  int32_t num_logits = 0;
  // A block table per group; entry i holds positions [i * block_tokens, ...). Entries that hold
  // new positions or visible ones are valid; the others are never read.
  std::span<const std::vector<uint32_t>> tables;
  bool only_best = false;  // not the logits, just the most likely token
};

// REQUIRES: token ids within the vocabulary; no two sequences write the same block.
struct ForwardBatch {
  std::span<const TokenId> tokens;  // of all sequences, in order
  std::span<const ForwardSequence> sequences;
};

// Of the asked tokens, in the order of the sequences; valid until the next call.
struct ForwardResult {
  std::span<const float> logits;  // [those not only_best, vocabulary]
  // [asked]: the lowest id of the greatest logit; 0 where none is above minus infinity.
  std::span<const TokenId> best;
};

class Model {
 public:
  virtual ~Model() = default;

  // Writes the KV of all tokens. Blocking; one caller at a time.
  virtual absl::StatusOr<ForwardResult> Forward(const ForwardBatch& batch) = 0;

  // Copies one block of a group's pool over another: all its layers, keys and values.
  virtual void CopyBlock(uint32_t group, uint32_t from, uint32_t to) = 0;
};

}  // namespace hexad
