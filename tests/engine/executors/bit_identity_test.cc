// Logits are bit-identical however a sequence is computed: alone or batched, in chunks of any size,
// with one thread or two, on a shared prefix, after preemption. Compared by digests of each step's
// logits and by the tokens drawn, greedy and at temperature 1.

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"
#include "engine/reference_executor.h"
#include "gtest/gtest.h"
#include "tests/engine/testing/step_driver.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

constexpr size_t kNewTokens = 6;

struct Case {
  const char* architecture;
  DType type;
  DType kv_type;
  Activations activations = Activations::kF32;
};

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.architecture) + Info(info.param.type).name + "Kv" +
         Info(info.param.kv_type).name +
         (info.param.activations == Activations::kInt8 ? "Int8" : "");
}

class BitIdentityTest : public ::testing::TestWithParam<Case> {
 protected:
  // What came out of a sequence: tokens, and the digest of the logits before each.
  struct Outcome {
    std::vector<TokenId> tokens;
    std::map<size_t, uint64_t> digests;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  void SetUp() override {
    TinyModelOptions options;
    options.architecture = GetParam().architecture;
    options.type = GetParam().type;
    if (options.architecture == "gemma3") options.layers = 7;
    if (GetParam().kv_type == DType::kQ8_0) options.head_dim = 32;
    model_ = TinyModel(options);
    ASSERT_NE(model_, nullptr);
    std::mt19937 random(5);
    // Shorter than a block, around block and window edges, and past an attention segment.
    for (const size_t length : {1, 15, 16, 47, 100, 300}) {
      std::vector<TokenId> prompt(length);
      for (TokenId& token : prompt) token = TokenId{static_cast<int32_t>(random() % 96)};
      prompts_.push_back(std::move(prompt));
      SamplingParams sampling;
      sampling.temperature = length % 2 == 0 ? 0.0f : 1.0f;
      sampling.seed = 100 + length;
      sampling.frequency_penalty = length == 47 ? 0.5f : 0.0f;
      sampling_.push_back(sampling);
    }
    executor_ = Make(1);
    for (size_t i = 0; i < prompts_.size(); ++i) expected_.push_back(Alone(*executor_, i, 512));
  }

  std::unique_ptr<Executor> Make(int threads, bool record_digests = true) {
    CpuExecutorOptions options;
    options.threads = threads;
    options.kv_type = GetParam().kv_type;
    options.activations = GetParam().activations;
    options.pool_blocks.assign(model_->spec.groups.size(), 512);
    options.record_digests = record_digests;
    auto executor = MakeCpuExecutor(model_, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return *std::move(executor);
  }

  static Outcome OutcomeOf(const StepDriver& driver, size_t sequence) {
    return {driver.output(sequence), driver.digests(sequence)};
  }

  Outcome Alone(Executor& executor, size_t which, int32_t chunk) {
    StepDriver driver(executor);
    const size_t sequence = driver.Add(prompts_[which], sampling_[which]);
    const absl::Status status = driver.Generate(sequence, kNewTokens, chunk);
    EXPECT_TRUE(status.ok()) << status;
    driver.Preempt(sequence);
    EXPECT_TRUE(driver.Step({}).ok());  // closes the slot
    return OutcomeOf(driver, sequence);
  }

  std::shared_ptr<const ModelFile> model_;
  std::vector<std::vector<TokenId>> prompts_;
  std::vector<SamplingParams> sampling_;
  std::unique_ptr<Executor> executor_;
  std::vector<Outcome> expected_;
};

TEST_P(BitIdentityTest, Chunks) {
  for (const int32_t chunk : {1, 16, 37}) {
    for (size_t i = 0; i < prompts_.size(); ++i) {
      if (chunk == 1 && prompts_[i].size() > 100) continue;
      EXPECT_EQ(Alone(*executor_, i, chunk), expected_[i]) << "prompt " << i << " by " << chunk;
    }
  }
}

TEST_P(BitIdentityTest, Threads) {
  const auto two = Make(2);
  for (size_t i = 0; i < prompts_.size(); ++i) {
    EXPECT_EQ(Alone(*two, i, 16), expected_[i]) << "prompt " << i;
  }
}

TEST_P(BitIdentityTest, BatchedWithOthers) {
  const auto two = Make(2);
  StepDriver driver(*two);
  std::vector<size_t> sequences;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    sequences.push_back(driver.Add(prompts_[i], sampling_[i]));
  }
  // Prefill chunks of some beside decodes of others, in a changing order.
  std::mt19937 random(9);
  for (int step = 0; step < 200; ++step) {
    std::vector<std::pair<size_t, int32_t>> work;
    for (const size_t sequence : sequences) {
      if (driver.output(sequence).size() >= kNewTokens || random() % 4 == 0) continue;
      work.push_back({sequence, 1 + static_cast<int32_t>(random() % 60)});
    }
    std::shuffle(work.begin(), work.end(), random);
    if (work.empty()) continue;
    ASSERT_TRUE(driver.Step(work).ok());
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_EQ(OutcomeOf(driver, sequences[i]), expected_[i]) << "prompt " << i;
  }
}

// Without digests, greedy rows take their token from the vocabulary product and have no logits.
TEST_P(BitIdentityTest, ThreadsWithoutLogits) {
  const auto quiet = Make(2, false);
  StepDriver driver(*quiet);
  std::vector<std::pair<size_t, int32_t>> work;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    work.push_back({driver.Add(prompts_[i], sampling_[i]), 512});
  }
  for (size_t step = 0; step < kNewTokens; ++step) ASSERT_TRUE(driver.Step(work).ok());
  for (size_t i = 0; i < work.size(); ++i) {
    EXPECT_EQ(driver.output(work[i].first), expected_[i].tokens) << "prompt " << i;
  }
}

TEST_P(BitIdentityTest, WarmCache) {
  StepDriver driver(*executor_);
  const size_t last = prompts_.size() - 1;
  const size_t first = driver.Add(prompts_[last], sampling_[last]);
  ASSERT_TRUE(driver.Generate(first, kNewTokens, 64).ok());
  for (const int32_t shared : {16, 256, 288}) {
    const size_t second = driver.Add(prompts_[last], sampling_[last]);
    driver.Share(second, first, shared);
    ASSERT_TRUE(driver.Generate(second, kNewTokens, 512).ok());
    EXPECT_EQ(OutcomeOf(driver, second), expected_[last]) << shared << " tokens shared";
  }
}

TEST_P(BitIdentityTest, Preempted) {
  StepDriver driver(*executor_);
  std::vector<size_t> sequences;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    sequences.push_back(driver.Add(prompts_[i], sampling_[i]));
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    ASSERT_TRUE(driver.Step({{sequences[i], 9}}).ok());  // preempted in its prefill, if longer
    driver.Preempt(sequences[i]);
    ASSERT_TRUE(driver.Generate(sequences[i], kNewTokens / 2, 64).ok());
    driver.Preempt(sequences[i]);  // and with half of its output known
    ASSERT_TRUE(driver.Generate(sequences[i], kNewTokens, 64).ok());
    EXPECT_EQ(OutcomeOf(driver, sequences[i]), expected_[i]) << "prompt " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, BitIdentityTest,
    ::testing::Values(Case{"llama", DType::kF32, DType::kF32},
                      Case{"llama", DType::kQ8_0, DType::kF16},
                      Case{"llama", DType::kF32, DType::kQ8_0},
                      Case{"gemma3", DType::kQ8_0, DType::kQ8_0, Activations::kInt8},
                      Case{"gemma3", DType::kF32, DType::kF16},
                      Case{"gemma3", DType::kQ5_1, DType::kF32},
                      Case{"llama", DType::kQ4_0, DType::kF16, Activations::kInt8},
                      Case{"gemma3", DType::kQ4_1, DType::kF32, Activations::kInt8}),
    NameOf);

// The reference draws the same tokens: the same sampler on nearly the same logits.
TEST(ReferenceAgreementTest, SameTokensAsTheCpuExecutor) {
  for (const char* architecture : {"llama", "qwen2", "gemma3"}) {
    TinyModelOptions tiny;
    tiny.architecture = architecture;
    tiny.layers = 7;
    tiny.tied_head = false;
    const auto model = TinyModel(tiny);
    ASSERT_NE(model, nullptr);
    CpuExecutorOptions cpu_options;
    cpu_options.kv_type = DType::kF32;
    cpu_options.pool_blocks.assign(model->spec.groups.size(), 16);
    const auto cpu = MakeCpuExecutor(model, cpu_options);
    ReferenceExecutorOptions reference_options;
    reference_options.pool_blocks = cpu_options.pool_blocks;
    const auto reference = MakeReferenceExecutor(model, reference_options);
    ASSERT_TRUE(cpu.ok() && reference.ok());
    std::vector<TokenId> prompt;
    for (int32_t i = 0; i < 40; ++i) prompt.push_back(TokenId{i * 7 % 96});
    SamplingParams sampling;
    sampling.seed = 3;
    sampling.num_logprobs = 2;
    std::vector<std::vector<SampledToken>> answers;
    for (Executor* executor : {cpu->get(), reference->get()}) {
      StepDriver driver(*executor);
      const size_t sequence = driver.Add(prompt, sampling);
      ASSERT_TRUE(driver.Generate(sequence, 12, 16).ok());
      answers.push_back(driver.sampled(sequence));
    }
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(answers[0][i].token, answers[1][i].token) << architecture << " " << i;
      EXPECT_NEAR(answers[0][i].logprob, answers[1][i].logprob, 1e-3) << architecture << " " << i;
    }
  }
}

}  // namespace
}  // namespace hexad
