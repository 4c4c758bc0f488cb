#include "scheduler/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "scheduler/planner/policies/registry.h"

namespace hexad {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

CallArrived Call(uint64_t call, uint64_t workflow, std::string model = "m") {
  return {.call = CallId{call},
          .workflow = WorkflowId{workflow},
          .tenant = "t",
          .model = std::move(model),
          .prompt_tokens = 100,
          .max_output_tokens = 50};
}

WorkerUp Up(uint32_t id, std::string model = "m") {
  return {.worker = WorkerId{id}, .name = "w" + std::to_string(id), .model = std::move(model)};
}

Decisions Turn(Planner& planner, std::string_view policy, absl::Time now) {
  const auto solver = MakePlannerPolicy(policy);
  Decisions decisions = planner.Merge(solver->Solve(planner.TakeSnapshot(now)), now);
  planner.CheckInvariants();
  return decisions;
}

TEST(PlannerTest, RanksByWorkflowArrivalNotByCallArrival) {
  Planner planner({});
  planner.On(Up(1), At(0));
  planner.On(Call(1, /*workflow=*/1), At(1));
  EXPECT_EQ(Turn(planner, "wf_fcfs", At(1)).assign.size(), 1u);
  planner.On(CallDone{CallId{1}}, At(2));
  planner.On(Call(2, /*workflow=*/2), At(3));
  planner.On(Call(3, /*workflow=*/1), At(4));  // later call of the earlier workflow
  const Decisions decisions = Turn(planner, "wf_fcfs", At(4));
  ASSERT_EQ(decisions.assign.size(), 2u);
  EXPECT_EQ(decisions.assign[0].placement.call, CallId{3});
  EXPECT_EQ(decisions.assign[1].placement.call, CallId{2});
  EXPECT_LT(decisions.assign[0].placement.rank, decisions.assign[1].placement.rank);
  EXPECT_LT(decisions.assign[0].sequence, decisions.assign[1].sequence);
  EXPECT_THAT(planner.Explain(CallId{3}),
              ::testing::AllOf(::testing::HasSubstr("3.000 s ago"), ::testing::HasSubstr("w1")));
}

TEST(PlannerTest, ACallThatIsAWorkflowByItselfLeavesNothingBehind) {
  Planner planner({});
  planner.On(Up(1), At(0));
  for (uint64_t id = 1; id <= 3; ++id) {
    CallArrived call = Call(id, /*workflow=*/id);
    call.whole_workflow = true;
    planner.On(call, At(1));
  }
  planner.On(CallDone{CallId{3}, FinishReason::kCancelled}, At(1));  // before it was placed
  EXPECT_EQ(Turn(planner, "wf_fcfs", At(1)).assign.size(), 2u);
  planner.On(CallDone{CallId{1}}, At(2));
  planner.On(CallDone{CallId{2}}, At(2));
  planner.CheckInvariants();
  EXPECT_EQ(planner.live_workflows(), 0);
  EXPECT_EQ(planner.NextWake(), absl::InfiniteFuture());
}

TEST(PlannerTest, CallFcfsRanksByCallArrival) {
  Planner planner({});
  planner.On(Up(1), At(0));
  planner.On(Call(1, 1), At(1));
  planner.On(Call(2, 2), At(3));
  planner.On(Call(3, 1), At(4));
  const Decisions decisions = Turn(planner, "call_fcfs", At(4));
  ASSERT_EQ(decisions.assign.size(), 3u);
  EXPECT_EQ(decisions.assign[1].placement.call, CallId{2});
}

TEST(PlannerTest, SpreadsOverTheLeastLoadedWorkersOfTheModel) {
  Planner planner({});
  planner.On(Up(1), At(0));
  planner.On(Up(2), At(0));
  planner.On(Up(3, "other"), At(0));
  for (uint64_t i = 1; i <= 4; ++i) planner.On(Call(i, i), At(1));
  std::vector<int> calls_at(4);
  for (const Assign& assign : Turn(planner, "wf_fcfs", At(1)).assign) {
    ++calls_at[static_cast<size_t>(assign.placement.decode)];
  }
  EXPECT_EQ(calls_at, (std::vector<int>{0, 2, 2, 0}));
}

TEST(PlannerTest, CallsOfADeadWorkerArePlacedAgain) {
  Planner planner({});
  planner.On(Up(1), At(0));
  planner.On(Call(1, 1), At(1));
  EXPECT_EQ(Turn(planner, "wf_fcfs", At(1)).assign.size(), 1u);
  planner.On(WorkerDown{WorkerId{1}}, At(2));
  planner.CheckInvariants();
  EXPECT_EQ(planner.waiting_calls(), 1);
  EXPECT_TRUE(Turn(planner, "wf_fcfs", At(2)).assign.empty());
  planner.On(Up(2), At(3));
  const Decisions decisions = Turn(planner, "wf_fcfs", At(3));
  ASSERT_EQ(decisions.assign.size(), 1u);
  EXPECT_EQ(decisions.assign[0].placement.decode, WorkerId{2});
}

TEST(PlannerTest, AStaleProposalPlacesNothingThatEnded) {
  Planner planner({});
  planner.On(Up(1), At(0));
  planner.On(Call(1, 1), At(1));
  planner.On(Call(2, 1), At(1));
  const Proposal proposal = MakePlannerPolicy("wf_fcfs")->Solve(planner.TakeSnapshot(At(1)));
  planner.On(CallDone{CallId{1}, FinishReason::kCancelled}, At(2));
  const Decisions decisions = planner.Merge(proposal, At(2));
  ASSERT_EQ(decisions.assign.size(), 1u);
  EXPECT_EQ(decisions.assign[0].placement.call, CallId{2});
  EXPECT_TRUE(planner.Merge(proposal, At(2)).assign.empty()) << "no call is placed twice";
}

TEST(PlannerTest, WorkflowsEndByDeclarationOrIdleTimeout) {
  Planner planner({.workflow_idle_timeout = absl::Seconds(10)});
  planner.On(Call(1, 1), At(0));
  planner.On(Call(2, 2), At(0));
  EXPECT_EQ(planner.NextWake(), absl::InfiniteFuture());
  planner.On(CallDone{CallId{1}}, At(1));
  planner.On(WorkflowEnded{WorkflowId{1}}, At(1));
  EXPECT_EQ(planner.live_workflows(), 1);
  planner.On(CallDone{CallId{2}}, At(2));
  EXPECT_EQ(planner.NextWake(), At(12));
  planner.On(WorkerStats{}, At(12));
  EXPECT_EQ(planner.live_workflows(), 0);
}

// Random events: whatever happens, nothing is lost, placed twice or miscounted.
TEST(PlannerTest, InvariantsHoldUnderRandomEvents) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    Planner planner({.workflow_idle_timeout = absl::Seconds(5)});
    uint64_t next_call = 1;
    uint32_t next_worker = 1;
    std::vector<uint64_t> live;
    for (int step = 0; step < 200; ++step) {
      const absl::Time now = At(step * 0.1);
      switch (random() % 6) {
        case 0:
        case 1:
          live.push_back(next_call);
          planner.On(Call(next_call++, random() % 7), now);
          break;
        case 2:
          if (live.empty()) break;
          std::swap(live[random() % live.size()], live.back());
          planner.On(CallDone{CallId{live.back()}}, now);
          live.pop_back();
          break;
        case 3:
          planner.On(Up(next_worker++), now);
          break;
        case 4:
          planner.On(WorkerDown{WorkerId{static_cast<uint32_t>(random() % next_worker)}}, now);
          break;
        case 5:
          Turn(planner, random() % 2 == 0 ? "wf_fcfs" : "call_fcfs", now);
          break;
      }
      planner.CheckInvariants();
    }
    planner.On(Up(next_worker), At(100));
    Turn(planner, "wf_fcfs", At(100));
    EXPECT_EQ(planner.waiting_calls(), 0) << "seed " << seed;
    for (const uint64_t call : live) {
      EXPECT_FALSE(planner.Explain(CallId{call}).empty()) << "seed " << seed << " call " << call;
    }
  }
}

TEST(PlannerPolicyTest, UnknownNamesAreNull) {
  EXPECT_EQ(MakePlannerPolicy("nope"), nullptr);
  for (const std::string_view name : PlannerPolicyNames()) {
    EXPECT_NE(MakePlannerPolicy(name), nullptr);
  }
}

}  // namespace
}  // namespace hexad
