// The real batcher over the real executor: two steps in flight, shared prefixes, pools so small
// that sequences are preempted. Every request gets the tokens it gets alone.

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "engine/cpu_executor.h"
#include "gtest/gtest.h"
#include "kvcache/core/keys.h"
#include "scheduler/batch/batcher.h"
#include "tests/engine/testing/step_driver.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

constexpr int32_t kNewTokens = 60;

struct Finished {
  std::vector<TokenId> tokens;
  FinishReason reason{};
};

// Results come on the executor's thread and are taken by the test's.
class Results {
 public:
  void Put(absl::StatusOr<StepResult> result) {
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    wake_.notify_one();
  }
  absl::StatusOr<StepResult> Take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !results_.empty(); });
    absl::StatusOr<StepResult> result = std::move(results_.front());
    results_.pop_front();
    return result;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<absl::StatusOr<StepResult>> results_;
};

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
  Results results;
  BatcherConfig config;
  config.max_running = 6;
  config.step_target = absl::Milliseconds(20);
  Batcher batcher(config, executor->shape().kv, executor->pool_blocks(), CostModel());
  std::map<RequestId, Finished> answers;
  absl::Time now = absl::UnixEpoch();
  size_t submitted = 0;
  int in_flight = 0;
  for (int turn = 0; answers.size() < specs_.size() || !batcher.idle(); ++turn) {
    ASSERT_LT(turn, 10000);
    now += absl::Milliseconds(10);
    if (turn % 2 == 0 && submitted < specs_.size()) {  // they arrive while others run
      ASSERT_EQ(batcher.On(Submit{specs_[submitted++]}, now), Outcome::kDone);
    }
    while (auto plan = batcher.Plan(now)) {
      executor->Submit(*std::move(plan),
                       [&](absl::StatusOr<StepResult> result) { results.Put(std::move(result)); });
      ++in_flight;
    }
    if (in_flight > 0) {
      auto result = results.Take();
      --in_flight;
      ASSERT_TRUE(result.ok()) << result.status();
      result->device_time = absl::Milliseconds(5);  // so that the plans do not depend on the clock
      batcher.On(StepDone{*std::move(result)}, now);
      batcher.CheckInvariants();
    }
    for (TokenEvent& event : batcher.TakeEvents()) {
      Finished& answer = answers[event.request];
      if (event.kind == TokenEvent::Kind::kFinished) answer.reason = event.reason;
      for (const SampledToken& token : event.tokens) answer.tokens.push_back(token.token);
    }
  }
  EXPECT_GT(batcher.stats().preemptions, 0u);
  EXPECT_GT(batcher.stats().cached_tokens, 0u);

  const auto alone = Make(600, 600);
  StepDriver driver(*alone);
  for (const RequestSpec& spec : specs_) {
    const size_t sequence = driver.Add(spec.prompt, spec.sampling);
    ASSERT_TRUE(driver.Generate(sequence, kNewTokens, 512).ok());
    EXPECT_EQ(answers[spec.id].reason, FinishReason::kLength);
    EXPECT_EQ(answers[spec.id].tokens, driver.output(sequence))
        << "request " << static_cast<uint64_t>(spec.id);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BatcherIdentityTest, ::testing::Values("llama", "gemma3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hexad
