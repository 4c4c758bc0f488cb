#pragma once

// Drives an executor with hand-made plans, as a batcher would but without one: sequences with block
// tables from a simple pool, any interleaving of chunks, preemption and shared prefixes.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/executor.h"

namespace hexad {

// Submits one plan and waits for its result.
absl::StatusOr<StepResult> RunStep(Executor& executor, StepPlan plan);

class StepDriver final {
 public:
  explicit StepDriver(Executor& executor);

  // A new sequence; its index.
  size_t Add(std::vector<TokenId> prompt, SamplingParams sampling);
  // The first num_tokens of `sequence` use the blocks of `other`, which has computed them.
  // REQUIRES: a multiple of block_tokens, less than the prompt.
  void Share(size_t sequence, size_t other, int32_t num_tokens);
  // Closes the slot and gives up its blocks: computed again from position 0 at the next step.
  void Preempt(size_t sequence);

  // One step: (sequence, most tokens to compute). A row that reaches the end of what is known
  // samples. Records tokens and digests.
  absl::Status Step(const std::vector<std::pair<size_t, int32_t>>& work);
  // Steps of one sequence alone until it has sampled `count` tokens.
  absl::Status Generate(size_t sequence, size_t count, int32_t chunk);

  const std::vector<TokenId>& output(size_t sequence) const { return sequences_[sequence].output; }
  const std::vector<SampledToken>& sampled(size_t sequence) const {
    return sequences_[sequence].sampled;
  }
  // Of the logits that gave output i, by i.
  const std::map<size_t, uint64_t>& digests(size_t sequence) const {
    return sequences_[sequence].digests;
  }

 private:
  struct Sequence {
    std::vector<TokenId> prompt, output;
    std::vector<SampledToken> sampled;
    SamplingParams sampling;
    std::map<size_t, uint64_t> digests;
    int32_t computed = 0;
    bool open = false;
    SlotId slot{};
    std::vector<std::vector<BlockId>> tables;  // of each group
    std::vector<uint32_t> sent;                // entries the executor knows
  };
  void Plan(Sequence& sequence, int32_t most_tokens, StepPlan& plan);
  BlockId NewBlock(size_t group);

  Executor& executor_;
  std::vector<Sequence> sequences_;
  std::vector<uint32_t> next_block_;
  std::vector<SlotId> closed_;
  int32_t next_slot_ = 0;
  uint64_t next_step_ = 1;
};

}  // namespace hexad
