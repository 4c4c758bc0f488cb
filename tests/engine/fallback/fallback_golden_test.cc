// The fallback model from text to tokens, against what transformers makes of the same weights: its
// template, its tokenizer, and greedy answers on the reference and on the CPU executor. The goldens
// come from tests/tools/golden_tiny.py; see docs/fallback-model.md.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cpu_executor.h"
#include "engine/reference_executor.h"
#include "engine/tokenizer/tokenizer.h"
#include "gtest/gtest.h"
#include "server/chat_template/chat_template.h"
#include "tests/engine/testing/step_driver.h"

namespace hexad {
namespace {

struct Tolerance {
  // Below such a lead of the first logit over the second, the second may rightly be chosen.
  double near_tie;
  double logit;
};
// F16 KV and another order of sums move a logit by some thousandths.
constexpr Tolerance kExact{0.02, 0.02};
// Activations rounded to 8 bits move it by tenths: the 0.3 of the golden file.
constexpr Tolerance kRounded{0.3, 0.3};

std::vector<TokenId> Tokens(const nlohmann::json& ids) {
  std::vector<TokenId> tokens;
  for (const auto& id : ids) tokens.push_back(TokenId{id.get<int32_t>()});
  return tokens;
}

class FallbackGoldenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string root = HEXAD_SOURCE_DIR;
    auto model = OpenModelFile(root + "/configs/models/hexad-tiny.gguf");
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto tokenizer = Tokenizer::FromGguf(*model_->gguf);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    std::ifstream in(root + "/tests/golden/hexad-tiny.json");
    cases_ = nlohmann::json::parse(in).at("cases");
    ASSERT_GE(cases_.size(), 9u);
  }

  std::string Rendered(const nlohmann::json& messages) const {
    const auto chat_template = ChatTemplate::Parse(tokenizer_->chat_template());
    EXPECT_TRUE(chat_template.ok()) << chat_template.status();
    TemplateInput input;
    TemplateValue::List list;
    for (const auto& message : messages) {
      list.emplace_back(TemplateDict{{"role", message.at("role").get<std::string>()},
                                     {"content", message.at("content").get<std::string>()}});
    }
    input.messages = std::move(list);
    input.bos_token = std::string(tokenizer_->bos_text());
    input.eos_token = std::string(tokenizer_->eos_text());
    const auto text = (*chat_template)->Render(input);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  }

  // Templates write the beginning of the text themselves.
  std::vector<TokenId> Prompt(const nlohmann::json& golden) const {
    if (golden.contains("messages")) {
      auto tokens = tokenizer_->Encode(Rendered(golden.at("messages")), {.parse_special = true});
      return tokens.ok() ? *std::move(tokens) : std::vector<TokenId>();
    }
    if (!golden.contains("text")) return Tokens(golden.at("prompt_tokens"));
    auto tokens = tokenizer_->Encode(golden.at("text").get<std::string>(),
                                     {.add_special = true, .parse_special = true});
    return tokens.ok() ? *std::move(tokens) : std::vector<TokenId>();
  }

  bool Ends(TokenId token) const {
    const auto& ends = tokenizer_->end_of_generation();
    return std::find(ends.begin(), ends.end(), token) != ends.end();
  }

  void CheckCase(Executor& executor, const nlohmann::json& golden, const Tolerance& tolerance);

  std::shared_ptr<const ModelFile> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  nlohmann::json cases_;
  size_t compared_ = 0;
  size_t expected_ = 0;
  size_t ended_ = 0;
};

// The best five of the first position, by their distances from the best.
void CheckFirst(const SampledToken& first, const nlohmann::json& top5, double tolerance) {
  ASSERT_EQ(first.top_logprobs.size(), top5.size());
  for (size_t i = 0; i < top5.size(); ++i) {
    const double expected = top5[i][1].get<double>() - top5[0][1].get<double>();
    // Rounding may change their order, but not the distances by rank.
    EXPECT_NEAR(first.top_logprobs[i].logprob - first.top_logprobs[0].logprob, expected, tolerance);
  }
}

void FallbackGoldenTest::CheckCase(Executor& executor, const nlohmann::json& golden,
                                   const Tolerance& tolerance) {
  const std::vector<TokenId> prompt = Prompt(golden);
  ASSERT_EQ(prompt, Tokens(golden.at("prompt_tokens")));
  const std::vector<TokenId> expected = Tokens(golden.at("tokens"));
  expected_ += expected.size();
  StepDriver driver(executor);
  SamplingParams greedy;
  greedy.temperature = 0;
  greedy.num_logprobs = 5;
  const size_t sequence = driver.Add(prompt, greedy);
  size_t i = 0;
  const auto& leads = golden.at("lead_over_second");
  for (; i < expected.size() && leads[i].get<double>() >= tolerance.near_tie; ++i) {
    ASSERT_TRUE(driver.Generate(sequence, i + 1, 512).ok());
    ASSERT_EQ(driver.output(sequence)[i], expected[i]) << "token " << i;
    EXPECT_EQ(Ends(expected[i]), golden.at("ended").get<bool>() && i + 1 == expected.size());
    if (i == 0) CheckFirst(driver.sampled(sequence)[0], golden.at("first_top5"), tolerance.logit);
  }
  compared_ += i;
  if (i == expected.size() && golden.at("ended").get<bool>()) {
    ++ended_;
    std::string text;
    for (const TokenId token : driver.output(sequence)) text += tokenizer_->TokenBytes(token);
    EXPECT_EQ(text, golden.at("answer").get<std::string>());
  }
  driver.Preempt(sequence);
  ASSERT_TRUE(driver.Step({}).ok());  // closes the slot
}

TEST_F(FallbackGoldenTest, CpuExecutor) {
  CpuExecutorOptions options;
  options.activations = Activations::kF32;
  options.threads = 2;
  options.pool_blocks = {128};
  const auto executor = MakeCpuExecutor(model_, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  for (const auto& golden : cases_) {
    SCOPED_TRACE(golden.at("name").get<std::string>());
    CheckCase(**executor, golden, kExact);
  }
  EXPECT_EQ(ended_, 5u);
  std::printf("cpu: %zu of %zu tokens compared, %zu answers to their end\n", compared_, expected_,
              ended_);
}

TEST_F(FallbackGoldenTest, CpuExecutorWithInt8Activations) {
  CpuExecutorOptions options;
  options.activations = Activations::kInt8;
  options.threads = 2;
  options.pool_blocks = {128};
  const auto executor = MakeCpuExecutor(model_, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  for (const auto& golden : cases_) {
    SCOPED_TRACE(golden.at("name").get<std::string>());
    CheckCase(**executor, golden, kRounded);
  }
  EXPECT_EQ(ended_, 2u);  // those without a near tie
  std::printf("cpu, int8 activations: %zu of %zu tokens compared, %zu answers to their end\n",
              compared_, expected_, ended_);
}

TEST_F(FallbackGoldenTest, ReferenceExecutor) {
  ReferenceExecutorOptions options;
  options.pool_blocks = {128};
  const auto executor = MakeReferenceExecutor(model_, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  for (const auto& golden : cases_) {
    if (golden.at("prompt_tokens").size() > 100) continue;  // its plain loops take too long
    SCOPED_TRACE(golden.at("name").get<std::string>());
    CheckCase(**executor, golden, kExact);
  }
  EXPECT_EQ(ended_, 5u);
  std::printf("reference: %zu of %zu tokens compared, %zu answers to their end\n", compared_,
              expected_, ended_);
}

}  // namespace
}  // namespace hexad
