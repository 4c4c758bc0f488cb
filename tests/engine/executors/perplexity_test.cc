#include "engine/perplexity.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <vector>

#include "gtest/gtest.h"

namespace hexad {
namespace {

// From the committed logits of PyTorch (see model_golden_test.cc), whatever the chunks.
TEST(PerplexityTest, IsThatOfTheGoldenLogits) {
  const std::string stem = std::string(HEXAD_SOURCE_DIR) + "/tests/golden/models/gemma3";
  const auto model = OpenModelFile(stem + ".gguf");
  ASSERT_TRUE(model.ok()) << model.status();
  std::ifstream in(stem + ".logits", std::ios::binary);
  int32_t count = 0;
  int32_t vocabulary = 0;
  in.read(reinterpret_cast<char*>(&count), 4);
  in.read(reinterpret_cast<char*>(&vocabulary), 4);
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  in.read(reinterpret_cast<char*>(tokens.data()), 4 * count);
  double expected = 0;
  for (int32_t i = 0; i + 1 < count; ++i) {
    std::vector<float> logits(static_cast<size_t>(vocabulary));
    in.read(reinterpret_cast<char*>(logits.data()), 4 * vocabulary);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    expected += std::log(total) - logits[static_cast<size_t>(tokens[static_cast<size_t>(i) + 1])];
  }
  ASSERT_TRUE(in.good());
  expected /= count - 1;
  for (const int32_t chunk : {1, 10, 512}) {
    PerplexityOptions options;
    options.kv_type = DType::kF32;
    options.activations = Activations::kF32;
    options.chunk_tokens = chunk;
    const auto result = MeasurePerplexity(*model, tokens, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->predicted, count - 1);
    EXPECT_NEAR(result->mean_negative_logprob, expected, 1e-4);
    EXPECT_NEAR(result->perplexity, std::exp(expected), 1e-2 * std::exp(expected));
  }
  EXPECT_FALSE(MeasurePerplexity(*model, std::span(tokens).first(1), {}).ok());
  tokens[3] = TokenId{vocabulary};
  EXPECT_FALSE(MeasurePerplexity(*model, tokens, {}).ok());
  EXPECT_FALSE(MeasurePerplexity(*model, std::vector<TokenId>(129), {}).ok());
}

}  // namespace
}  // namespace hexad
