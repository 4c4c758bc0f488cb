#pragma once

// What one replica computes next: continuous batching with chunked prefill.
//
// A value machine: events in, plans and token events out, time as an argument. The replica's loop
// is three moves: feed events, `while (plan = Plan(now)) executor.Submit(plan)`, TakeEvents().
//
// - Decodes come first and all run every step; prefill chunks fill the step up to the time target,
//   which the cost model fits to the steps that ran (Sarathi's stall-free batching, with a time
//   instead of a token budget). The first prompt gets a smallest chunk even when decodes use up the
//   target; without decodes a step may take longer.
// - Requests wait by (rank, arrival, id). One is admitted when its whole prompt fits beside what
//   the running ones still need. Whoever opens a prefix that a running sequence is just computing
//   follows it instead of computing it again.
// - When a decode finds no block, the running sequence that is last in order is preempted: its
//   blocks go, it keeps its place in the order, and is computed again when there is room. Sampling
//   depends on nothing but history, seed and position, so its tokens do not change.
// - Step n+1 is planned while n runs, with TokenId::kPending where n's sample goes. When n turns
//   out to end a sequence, its row of n+1 is dropped and not committed.
// - A failed step has no effect; its requests are computed again once, and fail at the second
//   failure of a step with them, whichever of them is to blame.
// - A sampled stop token ends the sequence, counts as an output token and is not emitted; below
//   min_new_tokens it is a token like others. At the length limits (max_new_tokens,
//   max_sequence_tokens()) the reason is kLength.
// - Every submitted request ends with exactly one kFinished event, a refused one at once.
//
// Not thread-safe: owned by the replica's loop. HEXAD_CHECKs that the executor keeps its contract.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "kvcache/core/keys.h"
#include "kvcache/core/replica_kv.h"
#include "scheduler/batch/batcher_types.h"
#include "scheduler/batch/sequence.h"
#include "scheduler/cost/cost_model.h"
#include "scheduler/step/plan.h"
#include "scheduler/step/request.h"

namespace hexad {

class Batcher final {
 public:
  // kv: pools of pool_blocks per group, as the executor has them.
  Batcher(BatcherConfig config, KvLayout kv, const std::vector<uint32_t>& pool_blocks,
          CostModel cost);

  Outcome On(ReplicaEvent event, absl::Time now);

  // The next step, to be submitted at once; nullopt: idle, blocked until a step ends, or enough in
  // flight.
  std::optional<StepPlan> Plan(absl::Time now);

  // In order per request.
  std::vector<TokenEvent> TakeEvents();

  // The past: Plan may give a step now. The far future: only after another event.
  absl::Time NextWake() const;

  // No request is alive and no step is in flight.
  bool idle() const { return sequences_.empty() && in_flight_.empty(); }

  // Prompt and output of one sequence: the context limit, or what the pools hold when it is alone.
  int32_t max_sequence_tokens() const { return max_sequence_tokens_; }

  BatcherStats stats() const;
  const CostModel& cost() const { return cost_; }
  const ReplicaKv& kv() const { return kv_; }

  // Aborts when queues, slots, tables and steps in flight disagree. O(everything).
  void CheckInvariants() const;

 private:
  struct RowInFlight {
    RequestId request{};
    uint64_t incarnation = 0;  // results for an earlier admission of the request are dropped
    SlotId slot{};
    int32_t num_tokens = 0;
    bool sample = false;
    bool ends_block = false;
  };
  struct StepInFlight {
    StepId step{};
    StepShape shape;
    std::vector<RowInFlight> rows;
  };
  struct NextStep;  // the plan being made
  // Rows that are looked ahead at, so that their memory is there when their turn comes.
  static constexpr size_t kRowsAhead = 6;
  enum class Admission : uint8_t { kAdmitted, kFollows, kNoRoom };

  Outcome OnEvent(Submit& event);
  Outcome OnEvent(const Reorder& event);
  Outcome OnEvent(const Cancel& event);
  Outcome OnEvent(const StopAt& event);
  Outcome OnEvent(StepDone& event);
  Outcome OnEvent(const StepFailed& event);
  Outcome OnEvent(const Drain& event);

  // Requests.
  Outcome CheckSubmit(const RequestSpec& spec) const;
  std::unique_ptr<Sequence> MakeSequence(RequestSpec spec);
  static std::unique_ptr<SlotOpen> MakeOpening(const Sequence& sequence);
  Sequence* Find(RequestId request);
  void Finish(Sequence& sequence, FinishReason reason);  // `sequence` is gone afterwards
  void Requeue(Sequence& sequence);  // from running to waiting, with nothing kept but its tokens
  void LeaveSlot(Sequence& sequence);
  void CloseTable(Sequence& sequence);
  void HandleNotices();

  // Results.
  StepInFlight TakeOldestStep(StepId step);
  Sequence* Find(const RowInFlight& row);  // null when the row's admission is over
  void ApplyRow(const RowInFlight& row, RowResult* result);
  void PrefetchRows(const std::vector<RowInFlight>& rows, size_t at) const;
  std::optional<FinishReason> AppendToken(Sequence& sequence, RowResult& result);

  // Planning.
  void PlanDecodes(NextStep& next);
  void PlanPrefills(NextStep& next);
  void Admit(NextStep& next);
  Admission TryAdmit(Sequence& sequence, NextStep& next);
  void Start(Sequence& sequence, NextStep& next);
  bool MakeRoom(Sequence& sequence, int32_t num_tokens, NextStep& next);
  bool Unblock();
  bool CloseLatestQueuedTable();
  std::vector<Sequence*> PrefillOrder(std::vector<Sequence*> prefills) const;
  int32_t ReservedTokens() const;
  int32_t ChunkTokens(const Sequence& sequence, const NextStep& next) const;
  bool LongStepInFlight() const;
  absl::Duration TargetOf(const NextStep& next) const;
  void AddRow(NextStep& next, Sequence& sequence, int32_t num_tokens);
  void AppendBlocks(NextStep& next, Sequence& sequence);
  StepPlan Begin(NextStep next);

  const BatcherConfig config_;
  ReplicaKv kv_;
  CostModel cost_;
  int32_t max_sequence_tokens_ = 0;

  absl::flat_hash_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;              // in order
  std::set<Sequence*, SequenceOrder> waiting_;  // in order
  absl::flat_hash_map<TableId, Sequence*> tables_;
  int32_t queued_tables_ = 0;  // of waiting ones
  std::deque<StepInFlight> in_flight_;
  std::vector<Sequence*> slots_;  // by slot; null: free
  std::vector<SlotId> free_slots_;
  std::vector<SlotId> closed_slots_;  // told to the executor with the next plan
  std::vector<TokenEvent> events_;
  UnitHasher hasher_;
  std::vector<std::vector<RowInFlight>> spare_rows_;  // memory of ended steps, to be used again
  std::vector<TableId> spare_tables_;

  uint64_t last_step_ = 0;
  uint64_t last_incarnation_ = 0;
  uint64_t newest_term_ = 0;
  bool draining_ = false;
  bool may_plan_ = false;
  BatcherStats totals_;  // only what is counted since the start, and last_step
};

}  // namespace hexad
