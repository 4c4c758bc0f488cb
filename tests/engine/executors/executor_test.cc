// Plans in, results out: order, pending tokens, two plans in flight, shutdown, and plans that are
// wrong in every way, which are errors of their step alone.

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"
#include "engine/models/cpu_transformer.h"
#include "engine/reference_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/testing/step_driver.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

class ExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyModelOptions tiny;
    tiny.architecture = "gemma3";
    tiny.layers = 7;
    tiny.context = 256;
    model_ = TinyModel(tiny);
    ASSERT_NE(model_, nullptr);
    CpuExecutorOptions options;
    options.pool_blocks = {32, 24};
    options.record_digests = true;
    auto executor = MakeCpuExecutor(model_, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    executor_ = *std::move(executor);
  }

  // Opens slot 1 with three blocks in each group and a prompt of `tokens` tokens to compute.
  StepPlan FirstPlan(int32_t tokens = 20) {
    StepPlan plan;
    plan.step = StepId{1};
    SlotOpen open;
    open.slot = SlotId{1};
    open.request = RequestId{77};
    open.sampling.temperature = 0;
    plan.opened.push_back(open);
    plan.blocks = {BlockId{3}, BlockId{9}, BlockId{4}};
    plan.appends = {{SlotId{1}, 0, 0, 0, 3}, {SlotId{1}, 1, 0, 0, 3}};
    for (int32_t i = 0; i < tokens; ++i) plan.tokens.push_back(TokenId{i % 96});
    plan.rows = {{.slot = SlotId{1}, .position = 0, .num_tokens = tokens, .sample = true}};
    return plan;
  }
  StepPlan DecodePlan(int32_t position, TokenId token) {
    StepPlan plan;
    plan.step = StepId{2};
    plan.tokens = {token};
    plan.rows = {{.slot = SlotId{1}, .position = position, .num_tokens = 1, .sample = true}};
    return plan;
  }
  std::string ErrorOf(StepPlan plan) {
    const auto result = RunStep(*executor_, std::move(plan));
    return result.ok() ? "" : std::string(result.status().message());
  }

  std::shared_ptr<const ModelFile> model_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(ExecutorTest, AnswersTheRowsThatSample) {
  const auto result = RunStep(*executor_, FirstPlan());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->step, StepId{1});
  ASSERT_EQ(result->rows.size(), 1u);
  EXPECT_EQ(result->rows[0].slot, SlotId{1});
  EXPECT_EQ(result->rows[0].request, RequestId{77});
  EXPECT_EQ(result->rows[0].tokens.size(), 1u);
  EXPECT_NE(result->rows[0].logits_digest, 0u);
  EXPECT_GT(result->device_time, absl::ZeroDuration());

  StepPlan quiet = DecodePlan(20, TokenId{5});
  quiet.rows[0].sample = false;
  const auto nothing = RunStep(*executor_, quiet);
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->rows.empty());
  const auto empty = RunStep(*executor_, StepPlan{.step = StepId{4}});
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->step, StepId{4});
}

TEST_F(ExecutorTest, PendingTakesTheTokenThatWasJustSampled) {
  std::promise<absl::StatusOr<StepResult>> promises[3];
  std::vector<int> order;
  std::mutex mutex;
  StepPlan plans[] = {FirstPlan(), DecodePlan(20, TokenId::kPending),
                      DecodePlan(21, TokenId::kPending)};
  for (int i = 0; i < 3; ++i) {  // all in flight at once
    executor_->Submit(std::move(plans[i]), [&, i](absl::StatusOr<StepResult> result) {
      {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      }
      promises[i].set_value(std::move(result));
    });
  }
  std::vector<RowResult> overlapped;
  for (auto& promise : promises) {
    auto result = promise.get_future().get();
    ASSERT_TRUE(result.ok()) << result.status();
    overlapped.push_back(result->rows.at(0));
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));

  // The same with tokens written out.
  StepPlan again = FirstPlan();
  again.closed = {SlotId{1}};
  auto result = RunStep(*executor_, again);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows[0].tokens[0].token, overlapped[i].tokens[0].token);
    EXPECT_EQ(result->rows[0].logits_digest, overlapped[i].logits_digest);
    result = RunStep(*executor_, DecodePlan(20 + i, result->rows[0].tokens[0].token));
  }
}

TEST_F(ExecutorTest, PenaltiesAndMinTokensFollowTheSlotsHistory) {
  StepPlan plan = FirstPlan();
  const auto free = RunStep(*executor_, plan);
  ASSERT_TRUE(free.ok());
  const TokenId favourite = free->rows[0].tokens[0].token;

  plan.closed = {SlotId{1}};
  plan.opened[0].min_new_tokens = 1;
  plan.opened[0].masked_until_min = {favourite};
  const auto masked = RunStep(*executor_, plan);
  ASSERT_TRUE(masked.ok());
  EXPECT_NE(masked->rows[0].tokens[0].token, favourite);
  EXPECT_EQ(masked->rows[0].logits_digest, free->rows[0].logits_digest);

  plan.opened[0].output = {TokenId{0}};  // one token is there already
  EXPECT_EQ(RunStep(*executor_, plan)->rows[0].tokens[0].token, favourite);

  plan.opened[0] = FirstPlan().opened[0];
  plan.opened[0].sampling.presence_penalty = 1000;
  plan.opened[0].output = {favourite};
  EXPECT_NE(RunStep(*executor_, plan)->rows[0].tokens[0].token, favourite);
}

TEST_F(ExecutorTest, CopiedBlocksHoldTheSameKv) {
  ASSERT_TRUE(RunStep(*executor_, FirstPlan(40)).ok());
  const auto expected = RunStep(*executor_, DecodePlan(40, TokenId{8}));
  ASSERT_TRUE(expected.ok());
  StepPlan plan = DecodePlan(40, TokenId{8});  // another slot on copies of the blocks
  plan.opened = FirstPlan().opened;
  plan.opened[0].slot = SlotId{2};
  plan.rows[0].slot = SlotId{2};
  plan.blocks = {BlockId{20}, BlockId{21}, BlockId{22}};
  const BlockId from[] = {BlockId{3}, BlockId{9}, BlockId{4}};
  for (uint32_t group = 0; group < 2; ++group) {
    plan.appends.push_back({SlotId{2}, group, 0, 0, 3});
    for (int i = 0; i < 3; ++i) plan.copies.push_back({group, from[i], plan.blocks[i]});
  }
  const auto copied = RunStep(*executor_, plan);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->rows[0].logits_digest, expected->rows[0].logits_digest);
}

TEST_F(ExecutorTest, BlocksBelowTheWindowAreNotNeeded) {
  ASSERT_TRUE(RunStep(*executor_, FirstPlan(40)).ok());
  const auto expected = RunStep(*executor_, DecodePlan(40, TokenId{8}));
  // The window is 20: position 40 sees 21 to 40. Entry 0 of the window group is left out.
  StepPlan plan = DecodePlan(40, TokenId{8});
  plan.opened = FirstPlan().opened;
  plan.opened[0].slot = SlotId{2};
  plan.rows[0].slot = SlotId{2};
  plan.blocks = FirstPlan().blocks;
  plan.appends = {{SlotId{2}, 0, 0, 0, 3}, {SlotId{2}, 1, 1, 1, 2}};
  const auto warm = RunStep(*executor_, plan);
  ASSERT_TRUE(warm.ok()) << warm.status();
  EXPECT_EQ(warm->rows[0].logits_digest, expected->rows[0].logits_digest);
  // The full group misses nothing; and a position whose window reaches entry 0 is refused.
  StepPlan early = DecodePlan(30, TokenId{8});
  early.rows[0].slot = SlotId{2};
  EXPECT_THAT(ErrorOf(early), HasSubstr("no blocks in group 1"));
}

TEST_F(ExecutorTest, WrongRowsAreErrorsAndTheSlotGoesOn) {
  ASSERT_TRUE(RunStep(*executor_, FirstPlan()).ok());
  const auto with = [&](auto change) {
    StepPlan plan = DecodePlan(20, TokenId{1});
    change(plan);
    return ErrorOf(std::move(plan));
  };
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].slot = SlotId{5}; }), HasSubstr("not open"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].position = -1; }), HasSubstr("position"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].position = 256; }), HasSubstr("position"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].position = 2147483647; }), HasSubstr("position"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].position = 48; }), HasSubstr("no blocks"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].num_tokens = 0; }), HasSubstr("0 tokens"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].num_tokens = 2; }), HasSubstr("tokens outside"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].first_token = 9; }), HasSubstr("tokens outside"));
  EXPECT_THAT(with([](StepPlan& p) { p.tokens[0] = TokenId{96}; }), HasSubstr("vocabulary"));
  EXPECT_THAT(with([](StepPlan& p) { p.tokens[0] = TokenId{-2}; }), HasSubstr("vocabulary"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].adapter = 0; }), HasSubstr("adapters"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].draft_parent = 0; }), HasSubstr("drafts"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].embedding = 0; }), HasSubstr("embeddings"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows[0].grammar = 0; }), HasSubstr("grammars"));
  EXPECT_THAT(with([](StepPlan& p) { p.rows.push_back(p.rows[0]); }), HasSubstr("two rows"));
  EXPECT_THAT(with([](StepPlan& p) {
                p.copies = {{0, BlockId{1}, BlockId{32}}};
              }),
              HasSubstr("copying"));
  EXPECT_THAT(with([](StepPlan& p) {
                p.copies = {{2, BlockId{1}, BlockId{2}}};
              }),
              HasSubstr("copying"));
  EXPECT_EQ(with([](StepPlan&) {}), "");
}

TEST_F(ExecutorTest, WrongDiffsAreErrorsAndTheRestIsApplied) {
  const auto with = [&](auto change) {
    StepPlan plan;
    change(plan);
    return ErrorOf(std::move(plan));
  };
  EXPECT_THAT(with([](StepPlan& p) { p.closed = {SlotId{3}}; }), HasSubstr("closing slot 3"));
  ASSERT_TRUE(RunStep(*executor_, FirstPlan()).ok());
  EXPECT_THAT(with([](StepPlan& p) { p.opened = {{.slot = SlotId{1}}}; }), HasSubstr("it is open"));
  const auto append = [&](BlockAppend append, std::vector<BlockId> blocks) {
    return with([&](StepPlan& p) {
      p.appends = {append};
      p.blocks = blocks;
    });
  };
  EXPECT_THAT(append({SlotId{4}, 0, 0, 0, 1}, {BlockId{0}}), HasSubstr("not open"));
  EXPECT_THAT(append({SlotId{1}, 2, 3, 0, 1}, {BlockId{0}}), HasSubstr("out of range"));
  EXPECT_THAT(append({SlotId{1}, 0, 3, 0, 2}, {BlockId{0}}), HasSubstr("out of range"));
  EXPECT_THAT(append({SlotId{1}, 0, 3, 2, 0}, {BlockId{0}}), HasSubstr("out of range"));
  EXPECT_THAT(append({SlotId{1}, 0, 17, 0, 1}, {BlockId{0}}), HasSubstr("out of range"));
  EXPECT_THAT(append({SlotId{1}, 0, 0xffffffff, 0, 1}, {BlockId{0}}), HasSubstr("out of range"));
  EXPECT_THAT(append({SlotId{1}, 1, 3, 0, 1}, {BlockId{24}}), HasSubstr("the pool has 24"));
  EXPECT_THAT(append({SlotId{1}, 0, 3, 0, 1}, {BlockId::kNone}), HasSubstr("the pool has 32"));

  // A plan with one wrong close still opens its slot.
  StepPlan mixed = FirstPlan();
  mixed.closed = {SlotId{42}, SlotId{1}};
  EXPECT_THAT(ErrorOf(mixed), HasSubstr("closing slot 42"));
  StepPlan rows = FirstPlan();
  rows.opened.clear();
  rows.appends.clear();
  EXPECT_EQ(ErrorOf(rows), "");
}

TEST_F(ExecutorTest, TwoRowsNeverWriteOneBlock) {
  StepPlan plan = FirstPlan();
  plan.opened.push_back(plan.opened[0]);
  plan.opened[1].slot = SlotId{2};
  plan.appends.push_back({SlotId{2}, 0, 0, 0, 3});
  plan.appends.push_back({SlotId{2}, 1, 0, 0, 3});
  plan.rows.push_back(plan.rows[0]);
  plan.rows[1].slot = SlotId{2};
  EXPECT_THAT(ErrorOf(plan), HasSubstr("written by two rows"));
}

TEST_F(ExecutorTest, PendingWithoutASampleIsAnError) {
  StepPlan plan = FirstPlan();
  plan.rows[0].sample = false;
  ASSERT_TRUE(RunStep(*executor_, plan).ok());
  EXPECT_THAT(ErrorOf(DecodePlan(20, TokenId::kPending)), HasSubstr("pending"));
}

TEST_F(ExecutorTest, DestructionFinishesWhatWasSubmitted) {
  int done = 0;
  executor_->Submit(FirstPlan(), [&](absl::StatusOr<StepResult> result) { done += result.ok(); });
  for (int32_t i = 0; i < 10; ++i) {
    executor_->Submit(DecodePlan(20 + i, TokenId::kPending),
                      [&](absl::StatusOr<StepResult> result) { done += result.ok(); });
  }
  executor_.reset();
  EXPECT_EQ(done, 11);
}

TEST_F(ExecutorTest, OptionsAreChecked) {
  const auto error = [&](auto change) {
    CpuExecutorOptions options;
    options.kv_bytes = 1 << 20;
    change(options);
    const auto executor = MakeCpuExecutor(model_, options);
    return executor.ok() ? "" : std::string(executor.status().message());
  };
  EXPECT_EQ(error([](CpuExecutorOptions&) {}), "");
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.threads = 0; }), HasSubstr("threads"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.block_tokens = 24; }), HasSubstr("multiple"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.kv_type = DType::kQ4_0; }), HasSubstr("Q4_0"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.kv_type = DType::kQ8_0; }),
              HasSubstr("q8_0 needs heads of a multiple of 32 dimensions"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.kv_bytes = 100; }), HasSubstr("give more"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.pool_blocks = {5}; }), HasSubstr("groups"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.pool_blocks = {5, 0}; }), HasSubstr("no blocks"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) {
                o.pool_blocks = {~0u, ~0u};
              }),
              HasSubstr("no memory"));
  EXPECT_THAT(error([](CpuExecutorOptions& o) { o.max_context_tokens = 257; }),
              HasSubstr("context"));
  CpuExecutorOptions options;
  options.kv_bytes = 1 << 20;
  options.max_context_tokens = 128;
  const auto executor = MakeCpuExecutor(model_, options);
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ((*executor)->shape().max_context_tokens, 128);
  EXPECT_EQ((*executor)->pool_blocks().size(), 2u);
  EXPECT_THAT((*executor)->shape().numerics_id, HasSubstr("cpu/"));
  EXPECT_THAT((*executor)->shape().numerics_id, HasSubstr("kv-F16"));
  const std::string int8_id = (*executor)->shape().numerics_id;
  ThreadTeam team(1);
  const auto int8_weights = PackCpuWeights(*model_, team, options.activations);
  options.activations = Activations::kF32;
  const auto exact = MakeCpuExecutor(model_, options);
  ASSERT_TRUE(exact.ok());
  EXPECT_NE((*exact)->shape().numerics_id, int8_id);
  EXPECT_EQ(MakeCpuExecutor(model_, int8_weights, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  ReferenceExecutorOptions reference;
  reference.block_tokens = 8;
  EXPECT_FALSE(MakeReferenceExecutor(model_, reference).ok());
}

}  // namespace
}  // namespace hexad
