#pragma once

// What one replica computes next: continuous batching with chunked prefill.
//
// A value machine: events in, plans and token events out, time as an argument. The replica's loop
// is three moves: feed events, `while (plan = Plan(now)) executor.Submit(plan)`, TakeEvents().
//
// - Decodes come first and all run every step; prefill chunks fill the step up to the time target.
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
// - A sampled stop token ends the sequence, counts as an output token and is not emitted. At the
//   length limits (max_new_tokens, max_sequence_tokens()) the reason is kLength.
// - Every submitted request ends with exactly one kFinished event, a refused one at once.
//
// Not thread-safe: owned by the replica's loop. HEXAD_CHECKs that the executor keeps its contract.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
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
    int32_t num_tokens = 0;
    bool sample = false;
  };
  struct StepInFlight {
    StepId step{};
    StepShape shape;
    std::vector<RowInFlight> rows;
  };
  struct Draft;  // the plan being made

  Outcome OnEvent(Submit& event, absl::Time now);
  Outcome OnEvent(Reorder& event, absl::Time now);
  Outcome OnEvent(Cancel& event, absl::Time now);
  Outcome OnEvent(StopAt& event, absl::Time now);
  Outcome OnEvent(KvReady& event, absl::Time now);
  Outcome OnEvent(KvLost& event, absl::Time now);
  Outcome OnEvent(StepDone& event, absl::Time now);
  Outcome OnEvent(StepFailed& event, absl::Time now);
  Outcome OnEvent(Drain& event, absl::Time now);

  Outcome Refuse(const RequestSpec& spec, Outcome outcome);
  StepInFlight EndOldestStep(StepId step);
  void ApplyRow(const RowInFlight& row, RowResult* result);
  // True when the token ends the sequence.
  bool AppendToken(Sequence& sequence, SampledToken token, std::vector<SampledToken>& emitted);
  void Finish(Sequence& sequence, FinishReason reason);
  TokenEvent EndEvent(const Sequence& sequence, FinishReason reason) const;

  // Takes the sequence off the executor and its blocks back; it waits at its place in the order.
  void Requeue(Sequence& sequence);
  void CloseTable(Sequence& sequence);
  void HandleNotices();
  Sequence* Find(RequestId request);
  // The row's sequence when it still is the one the row was planned for.
  Sequence* Find(const RowInFlight& row);

  void PlanDecodes(Draft& draft);
  void PlanPrefills(Draft& draft);
  void Admit(Draft& draft);
  enum class Admission : uint8_t { kAdmitted, kFollows, kNoRoom };
  Admission TryAdmit(Sequence& sequence, Draft& draft);
  bool MakeRoom(Sequence& sequence, int32_t num_tokens);
  bool Unblock();
  int32_t ChunkTokens(const Sequence& sequence, const Draft& draft) const;
  void AddRow(Draft& draft, Sequence& sequence, int32_t num_tokens);
  void AppendBlocks(Draft& draft, Sequence& sequence);
  int32_t ReservedTokens() const;
  std::vector<Sequence*> PrefillOrder();
  StepPlan Begin(Draft draft);

  const BatcherConfig config_;
  ReplicaKv kv_;
  CostModel cost_;
  int32_t max_sequence_tokens_ = 0;

  absl::flat_hash_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;              // by order
  std::set<Sequence*, SequenceOrder> waiting_;  // with a table: following, or about to run
  absl::flat_hash_map<TableId, RequestId> followers_;
  std::deque<StepInFlight> in_flight_;
  std::vector<SlotId> free_slots_;
  std::vector<SlotId> closed_slots_;  // told to the executor with the next plan
  std::vector<TokenEvent> events_;

  uint64_t last_step_ = 0;
  uint64_t last_incarnation_ = 0;
  uint64_t newest_term_ = 0;
  bool draining_ = false;
  bool may_plan_ = false;
  BatcherStats totals_;
};

}  // namespace hexad
