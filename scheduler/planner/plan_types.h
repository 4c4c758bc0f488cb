#pragma once

// A policy sees a Snapshot and answers with a Proposal; the planner merges what is still true of it
// into Decisions. All are values: solving may happen on another thread and take its time.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/planner/events.h"

namespace hexad {

struct WaitingCall {
  CallId call{};
  WorkflowId workflow{};
  std::string model;
  int32_t prompt_tokens = 0;
  int32_t max_output_tokens = 0;
  absl::Time arrival;           // of the call
  absl::Time workflow_arrival;  // of its workflow's first call
};

struct WorkerView {
  WorkerId worker{};
  std::string name;
  std::string model;
  WorkerRole role{};
  int32_t max_running = 0;
  int64_t kv_capacity_tokens = 0;
  int32_t assigned_calls = 0;   // placed here and not done
  int64_t assigned_tokens = 0;  // their prompt and output bounds
};

struct Snapshot {
  uint64_t version = 0;
  absl::Time now;
  std::vector<WaitingCall> waiting;  // ascending call id
  std::vector<WorkerView> workers;   // ascending worker id
};

struct Placement {
  CallId call{};
  WorkerId prefill{};
  WorkerId decode{};
  double rank = 0;     // low runs first at the worker
  std::string reason;  // a sentence with its numbers, for people
};

struct Proposal {
  uint64_t version = 0;
  std::vector<Placement> placements;  // in the order in which they should start
};

struct Assign {
  Placement placement;
  uint64_t term = 0;      // of the leading planner; workers refuse older ones
  uint64_t sequence = 0;  // of the order within the term
};

struct Decisions {
  std::vector<Assign> assign;
};

// Policies are seams: one file each, one line in policies/registry.cc.
class PlannerPolicy {
 public:
  virtual ~PlannerPolicy() = default;
  // Pure: equal snapshots give equal proposals. Calls whose model has no worker stay unplaced.
  virtual Proposal Solve(const Snapshot& snapshot) const = 0;
};

}  // namespace hexad
