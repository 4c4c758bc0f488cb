// The two first-come-first-served orders. They differ in one key: whose arrival counts.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "scheduler/planner/policies/policies.h"

namespace hexad {
namespace {

// Seconds since a fixed epoch keep ranks comparable between turns.
double RankOf(absl::Time arrival) { return absl::ToDoubleSeconds(arrival - absl::UnixEpoch()); }

class Fcfs final : public PlannerPolicy {
 public:
  explicit Fcfs(bool by_workflow) : by_workflow_(by_workflow) {}

  Proposal Solve(const Snapshot& snapshot) const override {
    std::vector<const WaitingCall*> order;
    for (const WaitingCall& call : snapshot.waiting) order.push_back(&call);
    std::sort(order.begin(), order.end(), [this](const WaitingCall* a, const WaitingCall* b) {
      if (Key(*a) != Key(*b)) return Key(*a) < Key(*b);
      if (a->arrival != b->arrival) return a->arrival < b->arrival;
      return a->call < b->call;
    });

    Proposal proposal;
    proposal.version = snapshot.version;
    std::vector<WorkerView> workers = snapshot.workers;  // grows by what is placed in this turn
    for (const WaitingCall* call : order) {
      WorkerView* best = nullptr;
      for (WorkerView& worker : workers) {
        if (worker.model != call->model || worker.role != WorkerRole::kBoth) continue;
        if (best == nullptr || worker.assigned_tokens < best->assigned_tokens) best = &worker;
      }
      if (best == nullptr) continue;
      proposal.placements.push_back(
          {.call = call->call,
           .prefill = best->worker,
           .decode = best->worker,
           .rank = RankOf(Key(*call)),
           .reason = absl::StrFormat(
               "%s order: its %s arrived %.3f s ago; worker %s has the least work (%d calls, %d "
               "tokens)",
               by_workflow_ ? "wf_fcfs" : "call_fcfs", by_workflow_ ? "workflow" : "call",
               absl::ToDoubleSeconds(snapshot.now - Key(*call)), best->name, best->assigned_calls,
               best->assigned_tokens)});
      best->assigned_calls += 1;
      best->assigned_tokens += int64_t{call->prompt_tokens} + call->max_output_tokens;
    }
    return proposal;
  }

 private:
  absl::Time Key(const WaitingCall& call) const {
    return by_workflow_ ? call.workflow_arrival : call.arrival;
  }

  bool by_workflow_;
};

}  // namespace

std::unique_ptr<PlannerPolicy> MakeWorkflowFcfs() { return std::make_unique<Fcfs>(true); }
std::unique_ptr<PlannerPolicy> MakeCallFcfs() { return std::make_unique<Fcfs>(false); }

}  // namespace hexad
