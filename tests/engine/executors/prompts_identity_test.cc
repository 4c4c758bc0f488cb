// Many prompts, each greedy and at temperature 1, through the batcher: whatever runs beside them,
// however their prompts are cut, with one thread or two, from a warm cache and after preemption,
// every step's logits have the digest that they have alone. So for every type of weights, KV and
// activations, on fewer prompts where a sanitizer slows them.
//
// HEXAD_MODELS names a folder of real models to run a smaller set on as well.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"
#include "engine/tokenizer/tokenizer.h"
#include "gtest/gtest.h"
#include "kernels/quant_block.h"
#include "kvcache/core/keys.h"
#include "tests/engine/testing/batcher_run.h"
#include "tests/engine/testing/tiny_models.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

constexpr int32_t kSharedTokens = 80;

// Around units, windows and attention segments; 700 is two chunks of at most 512.
const std::vector<int32_t> kLengths = {3,  5,  9,  14, 15, 16,  17,  20,  29,  30, 31,
                                       32, 33, 40, 45, 46, 47,  48,  49,  60,  61, 63,
                                       64, 65, 80, 96, 97, 112, 127, 130, 257, 700};
const std::vector<int32_t> kFewLengths = {12, 13, 14, 28, 29, 30, 44, 45, 46, 60, 90, 61, 99, 530};

// What may change bits, and so is the same in all variants.
struct Numerics {
  Activations activations = Activations::kInt8;
  DType kv_type = DType::kF16;
};

struct Variant {
  const char* name;
  int threads;
  int32_t max_running;
  int32_t chunk_tokens;  // what the step target allows
  bool shared_keys;      // prefixes are shared, within a run and between runs; else all are cold
  bool small_pools;      // that hold the longest sequence and nothing beside it
};

constexpr Variant kVariants[] = {
    {"alone, chunks of 512", 1, 1, 512, false, false},
    {"batched, chunks of 512, 2 threads", 2, 32, 512, false, false},
    {"batched, chunks of 16", 1, 32, 16, false, false},
    {"warm", 1, 32, 512, true, false},
    {"warm, chunks of 16, 2 threads", 2, 32, 16, true, false},
    {"preempted", 1, 32, 512, false, true},
    {"preempted, warm, 2 threads", 2, 32, 512, true, true},
};

class Prompts {
 public:
  // Prompts are cut from `source` at different places; every other one of those longer than
  // kSharedTokens begins with the same.
  Prompts(std::shared_ptr<const ModelFile> model, const std::vector<TokenId>& source,
          const std::vector<int32_t>& lengths, int32_t new_tokens, const Numerics& numerics)
      : model_(std::move(model)), new_tokens_(new_tokens), numerics_(numerics) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::vector<TokenId> prompt;
      if (i % 2 == 0 && lengths[i] > kSharedTokens) {
        prompt.assign(source.begin(), source.begin() + kSharedTokens);
      }
      const size_t start = kSharedTokens + 7 * i;
      for (size_t n = start; prompt.size() < static_cast<size_t>(lengths[i]); ++n) {
        prompt.push_back(source.at(n));
      }
      longest_ = std::max(longest_, lengths[i]);
      prompts_.push_back(std::move(prompt));
    }
  }

  size_t size() const { return prompts_.size(); }
  int32_t new_tokens() const { return new_tokens_; }
  const Numerics& numerics() const { return numerics_; }

  std::vector<RequestSpec> Specs(float temperature, bool shared_keys) const {
    std::vector<RequestSpec> specs;
    for (size_t i = 0; i < prompts_.size(); ++i) {
      RequestSpec& spec = specs.emplace_back();
      spec.id = RequestId{i + 1};
      spec.prompt = prompts_[i];
      const std::string own = std::to_string(i) + " at " + std::to_string(temperature);
      spec.root_key = RootKey(model_->digest, "", shared_keys ? "all" : own);
      spec.unit_keys = UnitKeys(spec.root_key, spec.prompt);
      spec.sampling.temperature = temperature;
      spec.sampling.seed = 1000 + i;
      spec.stop.max_new_tokens = new_tokens_;
    }
    return specs;
  }

  std::unique_ptr<Executor> MakeExecutor(const Variant& variant) const {
    CpuExecutorOptions options;
    options.threads = variant.threads;
    options.activations = numerics_.activations;
    options.kv_type = numerics_.kv_type;
    options.record_digests = true;
    const auto blocks = static_cast<uint32_t>((longest_ + new_tokens_ + 15) / 16);
    const auto all = blocks * static_cast<uint32_t>(variant.max_running == 1 ? 2 : size());
    options.pool_blocks.assign(model_->spec.groups.size(), variant.small_pools ? blocks : all);
    auto executor = MakeCpuExecutor(model_, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return executor.ok() ? *std::move(executor) : nullptr;
  }

 private:
  std::shared_ptr<const ModelFile> model_;
  const int32_t new_tokens_;
  const Numerics numerics_;
  int32_t longest_ = 0;
  std::vector<std::vector<TokenId>> prompts_;
};

using Answers = std::map<RequestId, BatcherRun::Answer>;

// Counted over all variants of a model.
struct Totals {
  size_t digests = 0;
  uint64_t preemptions = 0;
  uint64_t cached_tokens = 0;
};

// One temperature of one variant, batched or one after the other.
Answers AnswersOf(const Variant& variant, Batcher& batcher, Executor& executor,
                  const std::vector<RequestSpec>& specs) {
  std::vector<std::vector<RequestSpec>> runs;
  if (variant.max_running > 1) runs.push_back(specs);
  for (size_t i = 0; variant.max_running == 1 && i < specs.size(); ++i) runs.push_back({specs[i]});
  Answers answers;
  int32_t longest_row = 0;
  size_t most_rows = 0;
  for (const auto& run_specs : runs) {
    auto run = RunBatcher(batcher, executor, run_specs, {});
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return {};
    longest_row = std::max(longest_row, run->row_tokens.rbegin()->first);
    most_rows = std::max(most_rows, run->most_rows);
    answers.merge(run->answers);
  }
  if (!variant.shared_keys) {  // the others take their part of a step with a large target
    const bool all_of_it = variant.max_running == 1 || variant.chunk_tokens == 16;
    EXPECT_GE(longest_row, variant.chunk_tokens / (all_of_it ? 1 : 2));
  }
  EXPECT_LE(longest_row, variant.chunk_tokens);
  if (variant.max_running == 1) {
    EXPECT_EQ(most_rows, 1u);
  }
  if (variant.max_running > 1) {
    EXPECT_GT(most_rows, 2u);
  }
  if (variant.max_running > 1 && variant.chunk_tokens == 512 && !variant.small_pools) {
    EXPECT_EQ(most_rows, specs.size());  // all in one step
  }
  return answers;
}

// By temperature. Warm ones are run twice, the second time from what the first has left.
std::vector<Answers> RunVariant(const Variant& variant, const Prompts& prompts, Totals& totals) {
  const auto executor = prompts.MakeExecutor(variant);
  if (!executor) return {};
  BatcherConfig config;
  config.max_running = variant.max_running;
  config.step_target = absl::Milliseconds(variant.chunk_tokens);
  config.idle_step_factor = 1;
  CostModel::Coefficients coefficients;
  coefficients = {absl::ZeroDuration(), absl::ZeroDuration(), absl::Milliseconds(1),
                  absl::ZeroDuration(), absl::ZeroDuration(), absl::ZeroDuration()};
  Batcher batcher(config, executor->shape().kv, executor->pool_blocks(), CostModel(coefficients));
  const bool twice = variant.shared_keys && !variant.small_pools;
  std::vector<Answers> answers;
  for (const float temperature : {0.0f, 1.0f}) {
    const uint64_t cached_before = batcher.stats().cached_tokens;
    const auto specs = prompts.Specs(temperature, variant.shared_keys);
    answers.push_back(AnswersOf(variant, batcher, *executor, specs));
    if (twice) {
      EXPECT_GT(batcher.stats().cached_tokens, cached_before);
    }
  }
  const BatcherStats stats = batcher.stats();
  EXPECT_EQ(stats.preemptions > 0, variant.small_pools);
  // Nearly all of the second temperature's prompts are there from the first.
  if (twice) {
    EXPECT_GT(stats.cached_tokens, stats.prompt_tokens * 2 / 5);
  }
  totals.preemptions += stats.preemptions;
  totals.cached_tokens += stats.cached_tokens;
  return answers;
}

// The digests tell prompts apart, are the same at first for both temperatures, and temperature
// matters: otherwise that they are equal would say nothing.
void CheckTelling(const std::vector<Answers>& alone) {
  std::set<uint64_t> first_digests;
  size_t different = 0;
  for (const auto& [request, answer] : alone[0]) {
    const BatcherRun::Answer& warm = alone[1].at(request);
    EXPECT_EQ(answer.digests.at(0), warm.digests.at(0));
    first_digests.insert(answer.digests.at(0));
    different += answer.tokens != warm.tokens;
  }
  EXPECT_EQ(first_digests.size(), alone[0].size());
  EXPECT_GT(different, alone[0].size() / 2);
}

void CheckIdentity(const std::string& name, const Prompts& prompts) {
  Totals totals;
  std::vector<Answers> alone;
  for (const Variant& variant : kVariants) {
    SCOPED_TRACE(variant.name);
    const std::vector<Answers> answers = RunVariant(variant, prompts, totals);
    ASSERT_EQ(answers.size(), 2u);
    if (alone.empty()) {
      alone = answers;
      ASSERT_EQ(alone[0].size(), prompts.size());
      CheckTelling(alone);
    }
    for (size_t t = 0; t < answers.size(); ++t) {
      ASSERT_EQ(answers[t].size(), prompts.size());
      for (const auto& [request, answer] : answers[t]) {
        const BatcherRun::Answer& expected = alone[t].at(request);
        ASSERT_EQ(answer.digests.size(), static_cast<size_t>(prompts.new_tokens()));
        EXPECT_EQ(answer.reason, FinishReason::kLength);
        EXPECT_EQ(answer.digests, expected.digests) << static_cast<uint64_t>(request);
        EXPECT_EQ(answer.tokens, expected.tokens) << static_cast<uint64_t>(request);
        if (&variant != kVariants) totals.digests += answer.digests.size();
      }
    }
  }
  std::printf(
      "bit identity, %s, %s activations, KV %s: %zu prompts x 2 temperatures x %zu variants, "
      "%zu digests compared "
      "with those alone, %llu preemptions, %llu prompt tokens from the cache\n",
      name.c_str(), prompts.numerics().activations == Activations::kInt8 ? "int8" : "f32",
      Info(prompts.numerics().kv_type).name, prompts.size(), std::size(kVariants), totals.digests,
      static_cast<unsigned long long>(totals.preemptions),
      static_cast<unsigned long long>(totals.cached_tokens));
}

// Of the tiny models' vocabulary.
std::vector<TokenId> RandomTokens() {
  std::mt19937 random(3);
  std::vector<TokenId> tokens(1200);
  for (TokenId& token : tokens) {
    token = TokenId{static_cast<int32_t>(random() % TinyModelOptions().vocabulary)};
  }
  return tokens;
}

// English, as the model's tokens.
std::vector<TokenId> TextTokens(const ModelFile& model) {
  const auto tokenizer = Tokenizer::FromGguf(*model.gguf);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::ifstream in(std::string(HEXAD_SOURCE_DIR) + "/tests/golden/perplexity.txt",
                   std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  auto tokens = (*tokenizer)->Encode(text, {});
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return *std::move(tokens);
}

TEST(PromptsIdentityTest, FallbackModel) {
  const auto model =
      OpenModelFile(std::string(HEXAD_SOURCE_DIR) + "/configs/models/hexad-tiny.gguf");
  ASSERT_TRUE(model.ok()) << model.status();
  for (const Activations activations : {Activations::kInt8, Activations::kF32}) {
    const auto& lengths = kSlow && activations == Activations::kF32 ? kFewLengths : kLengths;
    CheckIdentity("hexad-tiny",
                  Prompts(*model, TextTokens(**model), lengths, 14, {activations, DType::kF16}));
  }
}

TEST(PromptsIdentityTest, WindowsAndFullLayers) {
  TinyModelOptions tiny;
  tiny.architecture = "gemma3";
  tiny.layers = 7;
  tiny.type = DType::kQ8_0;
  const auto model = TinyModel(tiny);
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->spec.groups.size(), 2u);
  CheckIdentity("tiny gemma3",
                Prompts(model, RandomTokens(), kSlow ? kFewLengths : kLengths, 14, {}));
}

// Every type of weights in both arithmetics, every type of KV in the default one. Floats are
// multiplied in one arithmetic only.
class TypesIdentityTest : public ::testing::TestWithParam<DType> {
 protected:
  void Check(DType type, const Numerics& numerics) {
    TinyModelOptions tiny;
    tiny.type = type;
    tiny.layers = kSlow ? 1 : 2;
    tiny.hidden = 256;
    tiny.head_dim = 64;
    tiny.ffn = 512;
    const auto model = TinyModel(tiny);
    ASSERT_NE(model, nullptr);
    const Prompts prompts(model, RandomTokens(), kSlow ? kFewLengths : kLengths, 14, numerics);
    CheckIdentity(std::string("tiny ") + Info(type).name, prompts);
  }
};

TEST_P(TypesIdentityTest, Weights) {
  Check(GetParam(), {Activations::kInt8, DType::kF16});
  if (QuantGroup(GetParam()) > 0) Check(GetParam(), {Activations::kF32, DType::kF16});
}

INSTANTIATE_TEST_SUITE_P(All, TypesIdentityTest, ::testing::ValuesIn(kAllTypes),
                         [](const auto& info) { return std::string(Info(info.param).name); });

class KvIdentityTest : public TypesIdentityTest {};

TEST_P(KvIdentityTest, Kv) { Check(DType::kQ4_0, {Activations::kInt8, GetParam()}); }

INSTANTIATE_TEST_SUITE_P(All, KvIdentityTest,
                         ::testing::Values(DType::kF32, DType::kQ8_0),  // F16 is above
                         [](const auto& info) { return std::string(Info(info.param).name); });

TEST(PromptsIdentityTest, RealModels) {
  const char* folder = std::getenv("HEXAD_MODELS");
  if (!folder) GTEST_SKIP() << "HEXAD_MODELS names no folder of models";
  size_t found = 0;
  for (const char* name : {"SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (!std::filesystem::exists(path)) continue;
    ++found;
    const auto model = OpenModelFile(path);
    ASSERT_TRUE(model.ok()) << model.status();
    for (const Activations activations : {Activations::kInt8, Activations::kF32}) {
      CheckIdentity(
          name, Prompts(*model, TextTokens(**model), kFewLengths, 8, {activations, DType::kF16}));
    }
  }
  if (found == 0) GTEST_SKIP() << "no known model in " << folder;
}

}  // namespace
}  // namespace hexad
