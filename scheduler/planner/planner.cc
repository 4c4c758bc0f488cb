#include "scheduler/planner/planner.h"

#include <utility>
#include <variant>

#include "kvcache/core/check.h"

namespace hexad {
namespace {

int64_t TokenBound(const CallArrived& call) {
  return int64_t{call.num_choices} * (int64_t{call.prompt_tokens} + call.max_output_tokens);
}

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

void Planner::On(const ClusterEvent& event, absl::Time now) {
  ++version_;
  std::visit(Overloaded{
                 [&](const CallArrived& arrived) { OnCallArrived(arrived, now); },
                 [&](const PrefillDone&) {},
                 [&](const CallDone& done) { OnCallDone(done.call, now); },
                 [&](const WorkflowEnded& ended) { OnWorkflowEnded(ended.workflow); },
                 [&](const WorkerUp& up) { workers_.try_emplace(up.worker, Worker{up}); },
                 [&](const WorkerStats&) {},
                 [&](const WorkerDown& down) { OnWorkerDown(down.worker); },
             },
             event);
  ForgetIdleWorkflows(now);
}

void Planner::OnCallArrived(const CallArrived& arrived, absl::Time now) {
  const auto [it, inserted] = calls_.try_emplace(arrived.call, Call{arrived, now});
  if (!inserted) return;
  ++waiting_;
  Workflow& workflow = workflows_.try_emplace(arrived.workflow, Workflow{now, now}).first->second;
  if (workflow.live_calls == 0) idle_.erase({workflow.last_active, arrived.workflow});
  ++workflow.live_calls;
  workflow.last_active = now;
  if (arrived.whole_workflow) workflow.ended = true;
}

void Planner::OnWorkflowEnded(WorkflowId id) {
  const auto it = workflows_.find(id);
  if (it == workflows_.end()) return;
  it->second.ended = true;
  if (it->second.live_calls > 0) return;
  idle_.erase({it->second.last_active, id});
  workflows_.erase(it);
}

void Planner::OnCallDone(CallId id, absl::Time now) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) return;
  if (it->second.placed) {
    Count(it->second, -1);
  } else {
    --waiting_;
  }
  const WorkflowId workflow_id = it->second.arrived.workflow;
  calls_.erase(it);
  Workflow& workflow = workflows_.at(workflow_id);
  workflow.last_active = now;
  if (--workflow.live_calls > 0) return;
  if (workflow.ended) {
    workflows_.erase(workflow_id);
  } else {
    idle_.emplace(now, workflow_id);
  }
}

void Planner::OnWorkerDown(WorkerId id) {
  if (!workers_.contains(id)) return;
  for (auto& [call_id, call] : calls_) {
    if (!call.placed || (call.placement.prefill != id && call.placement.decode != id)) continue;
    Count(call, -1);
    call.placed = false;
    ++waiting_;
  }
  workers_.erase(id);
}

void Planner::Count(const Call& call, int32_t direction) {
  const auto count = [&](WorkerId id) {
    const auto it = workers_.find(id);
    if (it == workers_.end()) return;
    it->second.assigned_calls += direction;
    it->second.assigned_tokens += direction * TokenBound(call.arrived);
  };
  count(call.placement.prefill);
  if (call.placement.decode != call.placement.prefill) count(call.placement.decode);
}

void Planner::ForgetIdleWorkflows(absl::Time now) {
  while (!idle_.empty() && now - idle_.begin()->first >= options_.workflow_idle_timeout) {
    workflows_.erase(idle_.begin()->second);
    idle_.erase(idle_.begin());
  }
}

Snapshot Planner::TakeSnapshot(absl::Time now) const {
  Snapshot snapshot;
  snapshot.version = version_;
  snapshot.now = now;
  for (const auto& [id, call] : calls_) {
    if (call.placed) continue;
    snapshot.waiting.push_back({.call = id,
                                .workflow = call.arrived.workflow,
                                .model = call.arrived.model,
                                .prompt_tokens = call.arrived.prompt_tokens,
                                .max_output_tokens = call.arrived.max_output_tokens,
                                .arrival = call.arrival,
                                .workflow_arrival = workflows_.at(call.arrived.workflow).arrival});
  }
  for (const auto& [id, worker] : workers_) {
    snapshot.workers.push_back({.worker = id,
                                .name = worker.up.name,
                                .model = worker.up.model,
                                .role = worker.up.role,
                                .max_running = worker.up.max_running,
                                .kv_capacity_tokens = worker.up.kv_capacity_tokens,
                                .assigned_calls = worker.assigned_calls,
                                .assigned_tokens = worker.assigned_tokens});
  }
  return snapshot;
}

Decisions Planner::Merge(const Proposal& proposal, absl::Time) {
  Decisions decisions;
  for (const Placement& placement : proposal.placements) {
    const auto it = calls_.find(placement.call);
    if (it == calls_.end() || it->second.placed) continue;
    if (!workers_.contains(placement.prefill) || !workers_.contains(placement.decode)) continue;
    it->second.placed = true;
    it->second.placement = placement;
    --waiting_;
    Count(it->second, +1);
    decisions.assign.push_back({placement, options_.term, next_sequence_++});
  }
  if (!decisions.assign.empty()) ++version_;
  return decisions;
}

absl::Time Planner::NextWake() const {
  return idle_.empty() ? absl::InfiniteFuture()
                       : idle_.begin()->first + options_.workflow_idle_timeout;
}

std::string Planner::Explain(CallId call) const {
  const auto it = calls_.find(call);
  if (it == calls_.end()) return {};
  if (!it->second.placed) return "waiting: no worker serves its model now";
  return it->second.placement.reason;
}

void Planner::CheckInvariants() const {
  int32_t waiting = 0;
  absl::flat_hash_map<WorkerId, int32_t> assigned;
  absl::flat_hash_map<WorkflowId, int32_t> live;
  for (const auto& [id, call] : calls_) {
    ++live[call.arrived.workflow];
    if (!call.placed) {
      ++waiting;
      continue;
    }
    ++assigned[call.placement.prefill];
    if (call.placement.decode != call.placement.prefill) ++assigned[call.placement.decode];
  }
  HEXAD_CHECK(waiting == waiting_, "waiting calls are miscounted");
  for (const auto& [id, worker] : workers_) {
    const auto it = assigned.find(id);
    HEXAD_CHECK(worker.assigned_calls == (it == assigned.end() ? 0 : it->second),
                "a worker's calls are miscounted");
    HEXAD_CHECK(worker.assigned_tokens >= 0, "a worker's tokens are miscounted");
  }
  for (const auto& [id, workflow] : workflows_) {
    const auto it = live.find(id);
    HEXAD_CHECK(workflow.live_calls == (it == live.end() ? 0 : it->second),
                "a workflow's calls are miscounted");
    HEXAD_CHECK((workflow.live_calls == 0) == idle_.contains({workflow.last_active, id}),
                "the idle order misses a workflow");
  }
  HEXAD_CHECK(idle_.size() <= workflows_.size(), "the idle order holds a forgotten workflow");
}

}  // namespace hexad
