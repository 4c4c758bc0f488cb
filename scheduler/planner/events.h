#pragma once

// What happens in the cluster, as the planner hears it: plain values, in order.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kvcache/core/types.h"
#include "scheduler/step/ids.h"
#include "scheduler/step/request.h"
#include "scheduler/step/worker_role.h"

namespace hexad {

// A call is revealed and may start: its parents and tools have finished.
struct CallArrived {
  CallId call{};
  WorkflowId workflow{};
  std::string tenant;
  std::string model;
  std::string agent;            // empty when unknown
  bool whole_workflow = false;  // no other call belongs to it: it ends with this one
  int32_t prompt_tokens = 0;
  int32_t max_output_tokens = 0;
  int32_t num_choices = 1;
  std::vector<ContentKey> prefix_keys;  // every 16th unit key of the prompt, for affinity
};
struct PrefillDone {
  CallId call{};
};
struct CallDone {
  CallId call{};
  FinishReason reason{};
  int32_t output_tokens = 0;
};
// The client said that no further call of the workflow comes.
struct WorkflowEnded {
  WorkflowId workflow{};
};

struct WorkerUp {
  WorkerId worker{};
  std::string name;
  std::string model;
  WorkerRole role = WorkerRole::kBoth;
  int32_t max_running = 0;         // sequences that decode together
  int64_t kv_capacity_tokens = 0;  // what the full groups hold
};
struct WorkerStats {
  WorkerId worker{};
  int32_t running = 0;
  int32_t waiting = 0;
  int64_t kv_used_tokens = 0;
};
// Its calls are revealed again, except those that the caller ends itself.
struct WorkerDown {
  WorkerId worker{};
};

using ClusterEvent = std::variant<CallArrived, PrefillDone, CallDone, WorkflowEnded, WorkerUp,
                                  WorkerStats, WorkerDown>;

}  // namespace hexad
