// The real batcher over the real executor: two steps in flight, shared prefixes, pools so small
// that sequences are preempted. Every request gets the tokens it gets alone.

#include <memory>
#include <random>
#include <vector>

#include "engine/cpu_executor.h"
#include "gtest/gtest.h"
#include "kvcache/core/keys.h"
#include "scheduler/batch/batcher.h"
#include "tests/engine/testing/batcher_run.h"
#include "tests/engine/testing/step_driver.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

constexpr int32_t kNewTokens = 60;

class BatcherIdentityTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    TinyModelOptions tiny;
    tiny.architecture = GetParam();
    tiny.context = 256;
    if (tiny.architecture == "gemma3") tiny.layers = 7;
    model_ = TinyModel(tiny);
    ASSERT_NE(model_, nullptr);
    std::mt19937 random(21);
    std::vector<TokenId> common(64);
    for (TokenId& token : common) token = TokenId{static_cast<int32_t>(random() % 96)};
    for (uint64_t i = 0; i < 12; ++i) {
      RequestSpec spec;
      spec.id = RequestId{i + 1};
      if (i % 3 != 0) spec.prompt = common;  // shared with others
      for (uint64_t n = 5 + random() % 40; n > 0; --n) {
        spec.prompt.push_back(TokenId{static_cast<int32_t>(random() % 96)});
      }
      spec.root_key = RootKey(model_->digest, "", "salt");
      spec.unit_keys = UnitKeys(spec.root_key, spec.prompt);
      spec.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
      spec.sampling.seed = 1000 + i;
      spec.sampling.repetition_penalty = i % 4 == 1 ? 1.2f : 1.0f;
      spec.stop.max_new_tokens = kNewTokens;
      spec.rank = static_cast<double>(i % 5);
      specs_.push_back(std::move(spec));
    }
  }

  std::unique_ptr<Executor> Make(uint32_t full_blocks, uint32_t window_blocks) {
    CpuExecutorOptions options;
    options.threads = 2;
    options.pool_blocks = {full_blocks};
    if (model_->spec.groups.size() > 1) options.pool_blocks.push_back(window_blocks);
    auto executor = MakeCpuExecutor(model_, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return *std::move(executor);
  }

  std::shared_ptr<const ModelFile> model_;
  std::vector<RequestSpec> specs_;
};

TEST_P(BatcherIdentityTest, EveryRequestGetsTheTokensItGetsAlone) {
  const auto executor = Make(16, 16);
  BatcherConfig config;
  config.max_running = 6;
  config.step_target = absl::Milliseconds(20);
  Batcher batcher(config, executor->shape().kv, executor->pool_blocks(), CostModel());
  BatcherRunOptions options;
  options.arrive_every_turns = 2;  // they arrive while others run
  options.device_time = absl::Milliseconds(5);
  const auto run = RunBatcher(batcher, *executor, specs_, options);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GT(batcher.stats().preemptions, 0u);
  EXPECT_GT(batcher.stats().cached_tokens, 0u);

  const auto alone = Make(600, 600);
  StepDriver driver(*alone);
  for (const RequestSpec& spec : specs_) {
    const size_t sequence = driver.Add(spec.prompt, spec.sampling);
    ASSERT_TRUE(driver.Generate(sequence, kNewTokens, 512).ok());
    EXPECT_EQ(run->answers.at(spec.id).reason, FinishReason::kLength);
    EXPECT_EQ(run->answers.at(spec.id).tokens, driver.output(sequence))
        << "request " << static_cast<uint64_t>(spec.id);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BatcherIdentityTest, ::testing::Values("llama", "gemma3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hexad
