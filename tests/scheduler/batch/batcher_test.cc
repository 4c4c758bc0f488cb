#include "scheduler/batch/batcher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kvcache/core/keys.h"

namespace hexad {
namespace {

KvLayout FullLayout() {
  KvLayout layout;
  layout.groups.emplace_back();
  return layout;
}

RequestSpec Request(uint64_t id, int32_t prompt_tokens, int32_t max_new_tokens) {
  RequestSpec spec;
  spec.id = RequestId{id};
  for (int32_t i = 0; i < prompt_tokens; ++i) {
    spec.prompt.push_back(TokenId{static_cast<int32_t>(id * 1000) + i});
  }
  spec.stop.max_new_tokens = max_new_tokens;
  spec.arrival = absl::UnixEpoch() + absl::Seconds(static_cast<int64_t>(id));
  return spec;
}

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

StepResult Sampled(const StepPlan& plan, std::vector<std::pair<uint64_t, int32_t>> tokens) {
  StepResult result;
  result.step = plan.step;
  for (const auto& [request, token] : tokens) {
    SampledToken sampled;
    sampled.token = TokenId{token};
    result.rows.push_back({SlotId{}, RequestId{request}, {sampled}, 0});
  }
  return result;
}

Batcher MakeBatcher(BatcherConfig config = {}, uint32_t blocks = 100) {
  return Batcher(std::move(config), FullLayout(), {blocks}, CostModel());
}

TEST(Batcher, RefusesWhatItCannotServeWithOneEndEach) {
  BatcherConfig config;
  config.max_waiting = 1;
  Batcher batcher = MakeBatcher(config, 2);  // 32 tokens
  EXPECT_EQ(batcher.max_sequence_tokens(), 32);
  EXPECT_EQ(batcher.On(Submit{Request(1, 32, 1)}, kNow), Outcome::kNeverFits);
  EXPECT_EQ(batcher.On(Submit{Request(2, 0, 1)}, kNow), Outcome::kInvalid);
  RequestSpec negative = Request(3, 4, 1);
  negative.prompt[2] = TokenId::kPending;
  EXPECT_EQ(batcher.On(Submit{negative}, kNow), Outcome::kInvalid);
  EXPECT_EQ(batcher.On(Submit{Request(4, 31, 100)}, kNow), Outcome::kDone);
  EXPECT_EQ(batcher.On(Submit{Request(4, 5, 1)}, kNow), Outcome::kDuplicate);
  EXPECT_EQ(batcher.On(Submit{Request(5, 5, 1)}, kNow), Outcome::kQueueFull);
  EXPECT_EQ(batcher.On(Drain{}, kNow), Outcome::kDone);
  EXPECT_EQ(batcher.On(Submit{Request(6, 5, 1)}, kNow), Outcome::kDraining);

  std::vector<uint64_t> ended;
  for (const TokenEvent& event : batcher.TakeEvents()) {
    EXPECT_EQ(event.kind, TokenEvent::Kind::kFinished);
    EXPECT_EQ(event.reason, FinishReason::kFailed);
    EXPECT_EQ(event.first_scheduled, absl::InfinitePast());
    ended.push_back(static_cast<uint64_t>(event.request));
  }
  EXPECT_EQ(ended, (std::vector<uint64_t>{1, 2, 3, 5, 6}));
}

TEST(Batcher, ARequestForNoTokensEndsAtOnce) {
  Batcher batcher = MakeBatcher();
  RequestSpec resumed = Request(2, 5, 3);
  resumed.resumed_output = {TokenId{1}, TokenId{2}, TokenId{3}};
  EXPECT_EQ(batcher.On(Submit{Request(1, 5, 0)}, kNow), Outcome::kDone);
  EXPECT_EQ(batcher.On(Submit{resumed}, kNow), Outcome::kDone);
  const std::vector<TokenEvent> events = batcher.TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, FinishReason::kLength);
  EXPECT_EQ(events[1].output_tokens, 3);
  EXPECT_TRUE(batcher.idle());
  EXPECT_FALSE(batcher.Plan(kNow));
}

TEST(Batcher, OpensASlotWithHistoryAndMasksStopTokens) {
  BatcherConfig config;
  config.end_of_sequence = {TokenId{1}};
  Batcher batcher = MakeBatcher(config);
  RequestSpec spec = Request(7, 20, 10);
  spec.resumed_output = {TokenId{50}, TokenId{51}};
  spec.stop.min_new_tokens = 4;
  spec.stop.stop_tokens = {TokenId{1}, TokenId{2}};
  spec.stop.ignore_end_of_sequence = true;
  batcher.On(Submit{spec}, kNow);
  const std::optional<StepPlan> plan = batcher.Plan(kNow);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->opened.size(), 1u);
  EXPECT_EQ(plan->opened[0].prompt, spec.prompt);
  EXPECT_EQ(plan->opened[0].output, spec.resumed_output);
  EXPECT_EQ(plan->opened[0].min_new_tokens, 4);
  EXPECT_EQ(plan->opened[0].masked_until_min, (std::vector<TokenId>{TokenId{2}}));
  ASSERT_EQ(plan->rows.size(), 1u);
  EXPECT_EQ(plan->rows[0].num_tokens, 22);
  EXPECT_TRUE(plan->rows[0].sample);
  ASSERT_EQ(plan->appends.size(), 1u);
  EXPECT_EQ(plan->appends[0].num_blocks, 2u);
}

TEST(Batcher, AStopTokenCountsAndIsNotEmitted) {
  Batcher batcher = MakeBatcher();
  RequestSpec spec = Request(1, 5, 10);
  spec.stop.stop_tokens = {TokenId{2}};
  batcher.On(Submit{spec}, kNow);
  StepPlan plan = *batcher.Plan(kNow);
  batcher.On(StepDone{Sampled(plan, {{1, 77}})}, kNow);
  plan = *batcher.Plan(kNow);
  const StepPlan extra = *batcher.Plan(kNow);
  EXPECT_EQ(extra.tokens, (std::vector<TokenId>{TokenId::kPending}));
  batcher.On(StepDone{Sampled(plan, {{1, 2}})}, kNow);
  batcher.On(StepDone{Sampled(extra, {{1, 99}})}, kNow);  // dropped
  const std::vector<TokenEvent> events = batcher.TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].tokens[0].token, TokenId{77});
  EXPECT_EQ(events[1].reason, FinishReason::kStop);
  EXPECT_EQ(events[1].output_tokens, 2);
  EXPECT_EQ(events[1].prompt_tokens, 5);
  EXPECT_EQ(events[1].first_scheduled, kNow);
  EXPECT_TRUE(batcher.idle());
}

TEST(Batcher, ARowWithoutATokenFailsItsRequestAlone) {
  Batcher batcher = MakeBatcher();
  batcher.On(Submit{Request(1, 5, 10)}, kNow);
  batcher.On(Submit{Request(2, 5, 1)}, kNow);
  const StepPlan plan = *batcher.Plan(kNow);
  StepResult result = Sampled(plan, {{1, 5}, {2, 6}});
  result.rows[0].tokens.clear();
  batcher.On(StepDone{result}, kNow);
  const std::vector<TokenEvent> events = batcher.TakeEvents();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].reason, FinishReason::kFailed);
  EXPECT_EQ(events[2].reason, FinishReason::kLength);
  EXPECT_TRUE(batcher.idle());
}

TEST(Batcher, OrdersOfAnOlderTermAreRefused) {
  Batcher batcher = MakeBatcher();
  batcher.On(Submit{Request(1, 5, 1)}, kNow);
  EXPECT_EQ(batcher.On(Reorder{RequestId{1}, 4, 7}, kNow), Outcome::kDone);
  EXPECT_EQ(batcher.On(Reorder{RequestId{1}, 4, 6}, kNow), Outcome::kStaleTerm);
  EXPECT_EQ(batcher.On(Reorder{RequestId{9}, 4, 8}, kNow), Outcome::kUnknownRequest);
  EXPECT_EQ(batcher.On(Reorder{RequestId{1}, 4, 7}, kNow), Outcome::kStaleTerm);
  // No number is the last of all, not the end of the order.
  EXPECT_EQ(batcher.On(Reorder{RequestId{1}, std::nan(""), 8}, kNow), Outcome::kDone);
  batcher.On(Submit{Request(2, 5, 1)}, kNow);
  batcher.CheckInvariants();
  EXPECT_EQ(batcher.Plan(kNow)->opened[0].request, RequestId{2});
}

TEST(Batcher, WakesOnlyWhenThereMayBeAStep) {
  Batcher batcher = MakeBatcher();
  EXPECT_EQ(batcher.NextWake(), absl::InfiniteFuture());
  batcher.On(Submit{Request(1, 5, 4)}, kNow);
  EXPECT_EQ(batcher.NextWake(), absl::InfinitePast());
  const StepPlan first = *batcher.Plan(kNow);
  EXPECT_TRUE(batcher.Plan(kNow));
  EXPECT_FALSE(batcher.Plan(kNow));  // two are in flight
  EXPECT_EQ(batcher.NextWake(), absl::InfiniteFuture());
  batcher.On(StepDone{Sampled(first, {{1, 9}})}, kNow);
  EXPECT_EQ(batcher.NextWake(), absl::InfinitePast());
}

TEST(Batcher, AChunkFitsTheStepTarget) {
  BatcherConfig config;
  config.step_target = absl::Milliseconds(20);
  config.idle_step_factor = 1;
  Batcher batcher(config, FullLayout(), {1000}, CostModel(CostModel::Coefficients()));
  batcher.On(Submit{Request(1, 2000, 1)}, kNow);
  const StepPlan plan = *batcher.Plan(kNow);
  const int32_t chunk = plan.rows[0].num_tokens;
  EXPECT_EQ(chunk % 16, 0);
  EXPECT_GE(chunk, 16);
  EXPECT_LE(CostModel().StepTime(batcher.stats().last_step), config.step_target);
  EXPECT_FALSE(plan.rows[0].sample);
}

}  // namespace
}  // namespace hexad
