#pragma once

// Decides which call runs where and in what order, for the whole cluster.
//
// A value machine: events in, decisions out, `now` an argument. One owner thread. A turn is
//   On(event)...; snapshot = TakeSnapshot(now); proposal = policy.Solve(snapshot); Merge(proposal)
// where Solve is pure and may run elsewhere; Merge drops what became stale meanwhile.
//
// Invariants: a placed call is counted at exactly its workers until CallDone or WorkerDown; a call
// is waiting, placed or forgotten; a workflow lives while it has calls, was not ended, or was
// active within the idle time-out.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/planner/events.h"
#include "scheduler/planner/plan_types.h"

namespace hexad {

struct PlannerOptions {
  uint64_t term = 1;
  absl::Duration workflow_idle_timeout = absl::Minutes(10);
};

class Planner final {
 public:
  explicit Planner(PlannerOptions options) : options_(options) {}

  // Events about unknown calls or workers are ignored: they raced with an end.
  void On(const ClusterEvent& event, absl::Time now);

  Snapshot TakeSnapshot(absl::Time now) const;
  Decisions Merge(const Proposal& proposal, absl::Time now);

  // When a workflow times out next; InfiniteFuture when none will.
  absl::Time NextWake() const;

  // Why the call is where it is; empty when unknown.
  std::string Explain(CallId call) const;

  int32_t waiting_calls() const { return waiting_; }
  int32_t live_workflows() const { return static_cast<int32_t>(workflows_.size()); }
  void CheckInvariants() const;

 private:
  struct Call {
    CallArrived arrived;
    absl::Time arrival;
    bool placed = false;
    Placement placement;
  };
  struct Workflow {
    absl::Time arrival;
    absl::Time last_active;
    int32_t live_calls = 0;
    bool ended = false;
  };
  struct Worker {
    WorkerUp up;
    int32_t assigned_calls = 0;
    int64_t assigned_tokens = 0;
  };

  void OnCallArrived(const CallArrived& arrived, absl::Time now);
  void OnCallDone(CallId id, absl::Time now);
  void OnWorkflowEnded(WorkflowId id);
  void OnWorkerDown(WorkerId id);
  void Count(const Call& call, int32_t direction);
  void ForgetIdleWorkflows(absl::Time now);

  PlannerOptions options_;
  uint64_t version_ = 0;
  uint64_t next_sequence_ = 1;
  int32_t waiting_ = 0;
  absl::btree_map<CallId, Call> calls_;
  absl::btree_map<WorkerId, Worker> workers_;
  absl::flat_hash_map<WorkflowId, Workflow> workflows_;
  absl::btree_set<std::pair<absl::Time, WorkflowId>> idle_;  // by last activity; no live calls
};

}  // namespace hexad
