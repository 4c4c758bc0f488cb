#include "server/serving/planner_loop.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/time/clock.h"
#include "server/serving/replica_loop.h"

namespace hexad {

PlannerLoop::PlannerLoop(std::unique_ptr<PlannerPolicy> policy, Hooks hooks, Logger& log)
    : policy_(std::move(policy)),
      hooks_(std::move(hooks)),
      log_(log),
      planner_(PlannerOptions{}),
      thread_([this] { Run(); }) {}

void PlannerLoop::Stop() {
  mailbox_.Close();
  if (thread_.joinable()) thread_.join();
}

void PlannerLoop::AddReplica(const WorkerUp& up, ReplicaLoop& replica) {
  mailbox_.Post(Replica{up, &replica});
}
void PlannerLoop::Arrive(PreparedCall call) { mailbox_.Post(std::move(call)); }
void PlannerLoop::Cancel(CallId call) { mailbox_.Post(CancelCall{call}); }
void PlannerLoop::Done(const CallOutcome& outcome) { mailbox_.Post(outcome); }

void PlannerLoop::Run() {
  std::vector<Message> messages;
  while (mailbox_.Take(&messages, NextWake())) {
    for (Message& message : messages) {
      std::visit([this](auto& value) { OnMessage(std::move(value)); }, message);
    }
    if (messages.empty()) planner_.On(WorkerStats{}, absl::Now());  // an idle workflow times out
    EndOverdue(absl::Now());
    Place();
  }
}

absl::Time PlannerLoop::NextWake() const {
  const absl::Time deadline =
      deadlines_.empty() ? absl::InfiniteFuture() : deadlines_.begin()->first;
  return std::min(deadline, planner_.NextWake());
}

void PlannerLoop::OnMessage(PreparedCall call) {
  const CallState& state = *call.state;
  if (state.cancel.load() != CancelReason::kNone) {
    hooks_.refused(call.state, CancelStatus(state));
    return;
  }
  CallArrived arrived;
  arrived.call = state.id;
  arrived.workflow = WorkflowOf(state);
  arrived.whole_workflow = state.call.workflow.workflow.empty();
  arrived.tenant = state.call.tenant;
  arrived.model = state.model->name;
  arrived.agent = state.call.workflow.agent;
  arrived.prompt_tokens = state.prompt_tokens;
  arrived.max_output_tokens = state.max_new_tokens;
  arrived.num_choices = state.call.num_choices;
  const std::vector<ContentKey>& keys = call.requests.front().unit_keys;
  for (size_t i = kUnitTokens - 1; i < keys.size(); i += kUnitTokens) {
    arrived.prefix_keys.push_back(keys[i]);
  }
  planner_.On(arrived, absl::Now());
  deadlines_.emplace(state.deadline, state.id);
  waiting_.emplace(state.id, std::move(call));
}

// Within the tenant, by the client's own name; a call that names none is a workflow by itself.
WorkflowId PlannerLoop::WorkflowOf(const CallState& call) {
  if (call.call.workflow.workflow.empty()) return WorkflowId{static_cast<uint64_t>(call.id)};
  constexpr uint64_t kNamed = uint64_t{1} << 63;
  return WorkflowId{absl::HashOf(call.call.tenant, call.call.workflow.workflow) | kNamed};
}

void PlannerLoop::OnMessage(const CancelCall& cancel) {
  if (const auto it = placed_.find(cancel.call); it != placed_.end()) {
    replicas_.at(it->second.worker)->Cancel(*it->second.state);
    return;
  }
  const auto it = waiting_.find(cancel.call);
  if (it == waiting_.end()) return;  // not here yet, its flag is looked at on arrival; or ended
  planner_.On(CallDone{cancel.call, FinishReason::kCancelled}, absl::Now());
  deadlines_.erase({it->second.state->deadline, cancel.call});
  hooks_.refused(it->second.state, CancelStatus(*it->second.state));
  waiting_.erase(it);
}

void PlannerLoop::OnMessage(const CallOutcome& outcome) {
  if (const auto it = placed_.find(outcome.call); it != placed_.end()) {
    deadlines_.erase({it->second.state->deadline, outcome.call});
    placed_.erase(it);
  }
  planner_.On(CallDone{outcome.call, outcome.reason, outcome.output_tokens}, absl::Now());
}

void PlannerLoop::OnMessage(const Replica& replica) {
  replicas_.emplace(replica.up.worker, replica.loop);
  planner_.On(replica.up, absl::Now());
}

void PlannerLoop::EndOverdue(absl::Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const CallId call = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    if (const auto it = placed_.find(call); it != placed_.end()) {
      SetCancelReason(*it->second.state, CancelReason::kDeadline);
    } else if (const auto waiting = waiting_.find(call); waiting != waiting_.end()) {
      SetCancelReason(*waiting->second.state, CancelReason::kDeadline);
    }
    OnMessage(CancelCall{call});
  }
}

void PlannerLoop::Place() {
  if (waiting_.empty()) return;
  const absl::Time now = absl::Now();
  for (const Assign& assign :
       planner_.Merge(policy_->Solve(planner_.TakeSnapshot(now)), now).assign) {
    const Placement& placement = assign.placement;
    auto node = waiting_.extract(placement.call);
    PreparedCall& call = node.mapped();
    for (RequestSpec& request : call.requests) request.rank = placement.rank;
    log_.Debug("placed", {{"call", placement.call},
                          {"request", call.state->call.request_id},
                          {"reason", placement.reason}});
    placed_.emplace(placement.call, Placed{placement.decode, call.state});
    replicas_.at(placement.decode)->Submit(std::move(call));
  }
}

}  // namespace hexad
