#pragma once

// The persistent rows of a host executor: what a StepPlan is a diff on. Applies the diff and turns
// the plan's rows into work, checking everything, so that a wrong plan is an error for its step and
// never a fault. Not thread-safe; owned by the executor's thread.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/sampling/history.h"
#include "scheduler/step/model_shape.h"
#include "scheduler/step/plan.h"

namespace hexad {

struct ExecutorSlot {
  RequestId request{};
  SamplingParams sampling;
  int32_t min_new_tokens = 0;
  std::vector<TokenId> masked_until_min;
  TokenHistory history;
  TokenId last_sampled = TokenId::kPending;  // kPending: nothing sampled yet

  // Per group, entry i holds positions [i * block_tokens, ...). Entries below first_usable may be
  // holes; all from there on are blocks of the pool.
  std::vector<std::vector<uint32_t>> tables;
  std::vector<uint32_t> first_usable;
};

class ExecutorSlots final {
 public:
  // `shape` must outlive the slots. pool_blocks: of each group.
  ExecutorSlots(const ModelShape& shape, std::vector<uint32_t> pool_blocks);

  // Closes, opens and appends. What is wrong is left out and the first of it reported; the rest is
  // applied, so that one bad entry does not make the following plans wrong as well.
  absl::Status ApplyDiff(const StepPlan& plan);

  struct Work {
    ExecutorSlot* slot = nullptr;
    const Row* row = nullptr;
  };
  // Checks copies and rows, and resolves TokenId::kPending into `tokens`, which becomes the tokens
  // of all rows one after another. On an error `work` is of no use, and nothing was changed.
  absl::Status Resolve(const StepPlan& plan, std::vector<Work>& work, std::vector<TokenId>& tokens);

  size_t size() const { return slots_.size(); }

 private:
  absl::Status Open(const SlotOpen& open);
  absl::Status Append(const StepPlan& plan, const BlockAppend& append);
  absl::Status CheckCopies(const StepPlan& plan) const;
  absl::Status CheckRow(const StepPlan& plan, const Row& row, const ExecutorSlot& slot);
  absl::Status CheckTables(const Row& row, const ExecutorSlot& slot);

  const ModelShape& shape_;
  const std::vector<uint32_t> pool_blocks_;
  const uint32_t most_table_entries_;
  absl::flat_hash_map<SlotId, ExecutorSlot> slots_;
  // The check that no two rows of a step write the same block, or belong to one slot.
  uint64_t check_ = 0;
  std::vector<std::vector<uint64_t>> written_at_;  // [group][block]
  absl::flat_hash_map<SlotId, uint64_t> computed_at_;
};

}  // namespace hexad
