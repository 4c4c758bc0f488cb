#pragma once

// An executor without arithmetic that believes nothing: it keeps, for every place in every block,
// a hash of the token history whose KV was written there, and complains when a row reads a place
// that holds anything else, when a block is written while another sequence's step in flight uses
// it, or when a plan breaks the contract of scheduler/step/plan.h.
//
// A complaint is kept in failure(); the first one counts.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvcache/core/groups.h"
#include "scheduler/step/plan.h"

namespace hexad::testing {

class CheckingExecutor final {
 public:
  // The token that follows `history`, of which the last num_output are output.
  using Sampler = std::function<TokenId(RequestId, const SlotOpen&,
                                        std::span<const TokenId> history, int32_t num_output)>;
  // Where a request's history starts, so that equal tokens of two tenants differ.
  using Root = std::function<uint64_t(RequestId)>;

  CheckingExecutor(KvLayout layout, std::vector<uint32_t> pools, int32_t max_slots, Sampler sampler,
                   Root root);

  void Submit(StepPlan plan);
  size_t in_flight() const { return steps_.size(); }
  StepId oldest() const { return steps_.front().plan.step; }

  // Executes the oldest step. With `fail`, it instead leaves garbage where it would have written.
  StepResult Finish(bool fail);

  // Who has which slot after the last plan.
  const std::map<SlotId, RequestId>& requests() const { return requests_; }

  const std::optional<std::string>& failure() const { return failure_; }

 private:
  struct Place {
    uint32_t group = 0;
    BlockId block{};
    auto operator<=>(const Place&) const = default;
  };
  // A row with the blocks it uses, as they were when it was planned.
  struct PlannedRow {
    Row row;
    uint64_t opening = 0;                             // which opening of the slot
    std::vector<std::map<uint32_t, BlockId>> blocks;  // per group, by table index
    std::vector<Place> reads, writes;
  };
  struct Step {
    StepPlan plan;
    std::vector<PlannedRow> rows;
  };
  struct SlotTable {  // as of the last plan
    uint64_t opening = 0;
    std::vector<std::map<uint32_t, BlockId>> blocks;
    std::optional<int32_t> next_position;
  };
  struct SlotState {  // as of the last execution
    SlotOpen open;
    std::vector<TokenId> history;
    bool broken = false;  // a step of it failed: what follows is garbage
    StepId last_sample{};
  };

  void Complain(std::string what);
  void ApplyDiff(const StepPlan& plan);
  PlannedRow Resolve(const StepPlan& plan, const Row& row);
  void CheckOverlap(const PlannedRow& row);
  void ExecuteRow(const Step& step, const PlannedRow& row, StepResult& result);
  void CheckReads(const PlannedRow& row, const std::vector<uint64_t>& hashes);
  uint64_t& Content(const PlannedRow& row, uint32_t group, int32_t position);

  const KvLayout layout_;
  const std::vector<uint32_t> pools_;
  const int32_t max_slots_;
  const Sampler sampler_;
  const Root root_;
  std::vector<std::vector<uint64_t>> content_;  // per group, by block * block_tokens + offset
  std::map<SlotId, SlotTable> tables_;
  std::map<SlotId, RequestId> requests_;
  std::map<SlotId, SlotState> slots_;
  std::deque<Step> steps_;
  uint64_t openings_ = 0;
  uint64_t last_step_ = 0;
  std::optional<std::string> failure_;
};

// A step of the history hash.
uint64_t MixHash(uint64_t hash, uint64_t value);

}  // namespace hexad::testing
