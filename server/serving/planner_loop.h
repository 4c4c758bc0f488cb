#pragma once

// The thread that owns the planner: hears events, asks the policy, sends calls to replicas.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "scheduler/planner/planner.h"
#include "server/log/log.h"
#include "server/serving/call_state.h"
#include "server/serving/emitter.h"
#include "server/serving/mailbox.h"

namespace hexad {

class ReplicaLoop;

// A tokenised call with one request a choice, ready to be placed.
struct PreparedCall {
  std::shared_ptr<CallState> state;
  std::vector<RequestSpec> requests;
};

class PlannerLoop final {
 public:
  struct Hooks {
    // The call never reached a replica.
    std::function<void(const std::shared_ptr<CallState>&, absl::Status)> refused;
  };
  PlannerLoop(std::unique_ptr<PlannerPolicy> policy, Hooks hooks, Logger& log);
  ~PlannerLoop() { Stop(); }
  // After the messages posted so far; later ones are ignored. Before the replicas go. Idempotent.
  void Stop();

  // Before the first call.
  void AddReplica(const WorkerUp& up, ReplicaLoop& replica);

  // Any thread.
  void Arrive(PreparedCall call);
  void Cancel(CallId call);
  void Done(const CallOutcome& outcome);

 private:
  struct CancelCall {
    CallId call;
  };
  struct Replica {
    WorkerUp up;
    ReplicaLoop* loop;
  };
  struct Placed {
    WorkerId worker;
    std::shared_ptr<CallState> state;
  };
  using Message = std::variant<PreparedCall, CancelCall, CallOutcome, Replica>;

  void Run();
  void OnMessage(PreparedCall call);
  void OnMessage(const CancelCall& cancel);
  void OnMessage(const CallOutcome& outcome);
  void OnMessage(const Replica& replica);
  void EndOverdue(absl::Time now);
  absl::Time NextWake() const;
  void Place();
  WorkflowId WorkflowOf(const CallState& call);

  const std::unique_ptr<PlannerPolicy> policy_;
  const Hooks hooks_;
  Logger& log_;
  Planner planner_;
  absl::flat_hash_map<WorkerId, ReplicaLoop*> replicas_;
  absl::flat_hash_map<CallId, PreparedCall> waiting_;
  absl::flat_hash_map<CallId, Placed> placed_;
  absl::btree_set<std::pair<absl::Time, CallId>> deadlines_;  // of waiting and placed calls
  Mailbox<Message> mailbox_;
  std::thread thread_;
};

}  // namespace hexad
