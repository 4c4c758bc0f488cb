#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "engine/sampling/philox.h"
#include "gtest/gtest.h"

namespace hexad {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> RandomLogits(size_t vocabulary, uint32_t seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<TokenId> Tokens(std::initializer_list<int> ids) {
  std::vector<TokenId> tokens;
  for (const int id : ids) tokens.push_back(TokenId{id});
  return tokens;
}

// The distribution that the parameters describe, by full sorts in double precision.
struct BruteForce {
  std::vector<int> order;             // what may be drawn, the most likely first
  std::vector<double> probabilities;  // by token id
};

BruteForce Distribution(std::vector<float> logits, const SamplingParams& params) {
  const size_t n = logits.size();
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  std::vector<double> weights(n);
  const double max = logits[order[0]];
  for (size_t i = 0; i < n; ++i) weights[i] = std::exp((logits[i] - max) / params.temperature);
  const auto keep_first = [&](size_t count) {
    for (size_t i = count; i < order.size(); ++i) weights[order[i]] = 0;
    order.resize(std::min(count, order.size()));
  };
  size_t kept = 0;
  while (kept < order.size() && weights[order[kept]] >= params.min_p) ++kept;
  keep_first(kept);
  if (params.top_k > 0) keep_first(static_cast<size_t>(params.top_k));
  double total = 0;
  for (const int id : order) total += weights[id];
  double sum = 0;
  if (params.top_p < 1) {
    for (size_t i = 0; i < order.size(); ++i) {
      sum += weights[order[i]];
      if (sum >= params.top_p * total) {
        keep_first(i + 1);
        break;
      }
    }
  }
  total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= total;
  return {order, weights};
}

TEST(SamplerTest, GreedyTakesTheLowestOfEqualLogits) {
  Sampler sampler;
  SamplingParams params;
  params.temperature = 0;
  const std::vector<float> logits = {1, 5, 5, -2};
  EXPECT_EQ(sampler.Sample(logits, params, {}).token, TokenId{1});
  params.temperature = 1e-6f;
  EXPECT_EQ(sampler.Sample(logits, params, {}).token, TokenId{1});
}

TEST(SamplerTest, DependsOnSeedAndPositionOnly) {
  const std::vector<float> logits = RandomLogits(1000, 1);
  SamplingParams params;
  params.seed = 99;
  Sampler first;
  Sampler second;
  const std::vector<float> other = RandomLogits(2000, 2);
  std::map<TokenId, int> seen;
  for (uint64_t position = 0; position < 200; ++position) {
    second.Sample(other, params, {.position = position});  // scratch of another call
    const TokenId token = first.Sample(logits, params, {.position = position}).token;
    EXPECT_EQ(token, second.Sample(logits, params, {.position = position}).token);
    ++seen[token];
  }
  EXPECT_GT(seen.size(), 20u);
}

// Every way of truncation draws what the brute-force distribution says.
TEST(SamplerTest, DistributionMatchesBruteForce) {
  std::vector<SamplingParams> all(8);
  all[1].temperature = 0.7f;
  all[2].top_k = 7;
  all[3].top_p = 0.8f;
  all[4].min_p = 0.05f;
  all[5].top_k = 20, all[5].top_p = 0.9f, all[5].temperature = 1.5f;
  all[6].top_k = 30, all[6].top_p = 0.95f, all[6].min_p = 0.02f, all[6].temperature = 2.0f;
  all[7].temperature = 3.0f, all[7].top_p = 0.999f;
  const std::vector<float> logits = RandomLogits(50, 3, 2);
  constexpr int kDraws = 20000;
  for (size_t which = 0; which < all.size(); ++which) {
    const BruteForce expected = Distribution(logits, all[which]);
    all[which].seed = 1000 + which;
    Sampler sampler;
    std::vector<int> counts(logits.size());
    for (uint64_t position = 0; position < kDraws; ++position) {
      const TokenId token = sampler.Sample(logits, all[which], {.position = position}).token;
      ++counts[static_cast<size_t>(token)];
    }
    double chi_square = 0;
    int bins = 0;
    double rest_expected = 0;
    double rest_counted = 0;
    for (size_t id = 0; id < logits.size(); ++id) {
      const double expectation = expected.probabilities[id] * kDraws;
      if (expectation == 0) {
        EXPECT_EQ(counts[id], 0) << "case " << which << " token " << id;
      } else if (expectation < 5) {
        rest_expected += expectation;
        rest_counted += counts[id];
      } else {
        chi_square += std::pow(counts[id] - expectation, 2) / expectation;
        ++bins;
      }
    }
    if (rest_expected > 5) {
      chi_square += std::pow(rest_counted - rest_expected, 2) / rest_expected;
      ++bins;
    }
    // Wilson-Hilferty bound of the chi-square at p = 0.001.
    const double d = std::max(1, bins - 1);
    const double bound = d * std::pow(1 - 2 / (9 * d) + 3.09 * std::sqrt(2 / (9 * d)), 3);
    EXPECT_LT(chi_square, bound) << "case " << which;
  }
}

// The draw itself, not only its distribution: walking the kept tokens, the most likely first.
TEST(SamplerTest, TruncatedDrawEqualsAWalkOverTheSortedTokens) {
  std::mt19937 random(17);
  for (int round = 0; round < 300; ++round) {
    const size_t vocabulary = 3 + random() % 3000;
    std::vector<float> logits = RandomLogits(vocabulary, random(), 0.5f + random() % 4);
    for (float& logit : logits) logit = std::round(logit * 8) / 8;  // many ties
    SamplingParams params;
    params.seed = random();
    params.temperature = 0.5f + static_cast<float>(random() % 20) / 10;
    if (random() % 2) params.top_k = 1 + static_cast<int>(random() % vocabulary);
    if (random() % 2) params.min_p = static_cast<float>(random() % 10) / 100;
    params.top_p = static_cast<float>(1 + random() % 99) / 100 + 0.00037f;
    const BruteForce expected = Distribution(logits, params);
    const uint64_t position = random();
    const double target = UniformAt(params.seed, position);
    double walked = 0;
    int answer = expected.order.back();
    double margin = 1;
    for (const int id : expected.order) {
      walked += expected.probabilities[id];
      margin = std::min(margin, std::abs(walked - target));
      if (walked > target) {
        answer = id;
        break;
      }
    }
    if (margin < 1e-5) continue;  // between two tokens by less than the float weights resolve
    Sampler sampler;
    EXPECT_EQ(sampler.Sample(logits, params, {.position = position}).token, TokenId{answer})
        << "round " << round;
  }
}

TEST(SamplerTest, BiasMaskAndPenalties) {
  Sampler sampler;
  SamplingParams params;
  params.temperature = 0;
  const std::vector<float> logits = {4, 3, 2, 1, -1};
  params.logit_bias = {{TokenId{3}, 5.0f}, {TokenId{-1}, 9.0f}, {TokenId{5}, 9.0f}};
  EXPECT_EQ(sampler.Sample(logits, params, {}).token, TokenId{3});
  params.logit_bias = {{TokenId{0}, -100.0f}};
  EXPECT_EQ(sampler.Sample(logits, params, {}).token, TokenId{1});
  params.logit_bias.clear();

  const std::vector<TokenId> masked = Tokens({0, 1, 77, -3});
  const auto with_outputs = [&](int outputs) {
    std::vector<TokenId> output(static_cast<size_t>(outputs), TokenId{4});
    const TokenHistory history(params, {}, output);
    return sampler
        .Sample(logits, params,
                {.history = &history, .min_new_tokens = 2, .masked_until_min = masked})
        .token;
  };
  EXPECT_EQ(with_outputs(0), TokenId{2});
  EXPECT_EQ(with_outputs(1), TokenId{2});
  EXPECT_EQ(with_outputs(2), TokenId{0});

  params.repetition_penalty = 2;  // 0 from the prompt: 2; 1 from the output: 1.5
  const std::vector<TokenId> prompt = Tokens({0});
  const std::vector<TokenId> output = Tokens({1, 1});
  TokenHistory history(params, prompt, output);
  EXPECT_EQ(sampler.Sample(logits, params, {.history = &history}).token, TokenId{0});
  history.AddOutput(TokenId{0});
  history.AddOutput(TokenId{2});
  EXPECT_EQ(history.output_tokens(), 4);
  // Now 2, 1.5, 1, 1, -1: the first again, until bias moves it.
  EXPECT_EQ(sampler.Sample(logits, params, {.history = &history}).token, TokenId{0});

  params.repetition_penalty = 1;
  params.presence_penalty = 0.5f;
  params.frequency_penalty = 1.5f;
  TokenHistory counted(params, prompt, output);  // 4, 3 - 3.5, 2, 1, -1; the prompt costs nothing
  EXPECT_EQ(sampler.Sample(logits, params, {.history = &counted}).token, TokenId{0});
  counted.AddOutput(TokenId{0});  // 4 - 2 = 2, ties with token 2
  EXPECT_EQ(sampler.Sample(logits, params, {.history = &counted}).token, TokenId{0});
  counted.AddOutput(TokenId{0});
  EXPECT_EQ(sampler.Sample(logits, params, {.history = &counted}).token, TokenId{2});

  params = SamplingParams();
  params.temperature = 0;
  params.repetition_penalty = 3;  // negative logits are multiplied
  const std::vector<float> negative = {-1, -2, -2.5f};
  const TokenHistory seen(params, prompt, {});
  EXPECT_EQ(sampler.Sample(negative, params, {.history = &seen}).token, TokenId{1});
}

TEST(SamplerTest, LogprobsAreThoseOfTheRawLogits) {
  const std::vector<float> logits = RandomLogits(5000, 8);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });

  Sampler sampler;
  SamplingParams params;
  params.temperature = 0;
  params.num_logprobs = 20;
  params.logit_bias = {{TokenId{17}, 100.0f}};  // changes the choice, not the logprobs
  const SampledToken sampled = sampler.Sample(logits, params, {});
  EXPECT_EQ(sampled.token, TokenId{17});
  EXPECT_NEAR(sampled.logprob, logits[17] - std::log(total), 1e-5);
  ASSERT_EQ(sampled.top_logprobs.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sampled.top_logprobs[i].token, TokenId{order[i]});
    EXPECT_NEAR(sampled.top_logprobs[i].logprob, logits[order[i]] - std::log(total), 1e-5);
  }
  params.num_logprobs = 0;
  EXPECT_TRUE(sampler.Sample(logits, params, {}).top_logprobs.empty());
  EXPECT_LT(sampler.Sample(logits, params, {}).logprob, 0);
  params.num_logprobs = -1;
  EXPECT_EQ(sampler.Sample(logits, params, {}).logprob, 0);
  params.num_logprobs = 9;
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 2}, params, {}).top_logprobs.size(), 2u);
}

TEST(SamplerTest, NanAndInfinityNeverReachTheAnswer) {
  Sampler sampler;
  const std::vector<std::vector<float>> cases = {
      {kNan, 1, 2, kNan},
      {kNan, kNan, kNan},
      {-kInfinity, -kInfinity, -kInfinity},
      {kInfinity, 1, kInfinity},
      {-kInfinity, kNan, -1e30f},
      {3e38f, -3e38f, kNan},
      {kInfinity, -kInfinity, kNan},
  };
  for (const std::vector<float>& logits : cases) {
    for (const float temperature : {0.0f, 0.01f, 1.0f}) {
      for (const bool truncate : {false, true}) {
        for (uint64_t position = 0; position < 20; ++position) {
          SamplingParams params;
          params.temperature = temperature;
          params.num_logprobs = 5;
          if (truncate) params.top_k = 2, params.top_p = 0.5f, params.min_p = 0.1f;
          const SampledToken sampled = sampler.Sample(logits, params, {.position = position});
          const auto id = static_cast<size_t>(sampled.token);
          ASSERT_LT(id, logits.size());
          const bool any = std::any_of(logits.begin(), logits.end(),
                                       [](float logit) { return logit > -kInfinity; });
          if (any) {
            EXPECT_GT(logits[id], -kInfinity);
          }
          EXPECT_TRUE(std::isfinite(sampled.logprob));
          EXPECT_LE(sampled.logprob, 0);
          for (const TokenLogprob& top : sampled.top_logprobs) {
            EXPECT_GE(top.logprob, kLowestLogprob);
            EXPECT_TRUE(std::isfinite(top.logprob));
          }
        }
      }
    }
  }
}

TEST(SamplerTest, ALargeFlatVocabularyIsDrawnFromWhole) {
  const std::vector<float> logits(262144, 0.0f);
  SamplingParams params;
  params.top_p = 0.5f;  // keeps the lower half of the ids
  Sampler sampler;
  for (uint64_t position = 0; position < 5; ++position) {
    const double u = UniformAt(params.seed, position);
    const auto id =
        static_cast<double>(sampler.Sample(logits, params, {.position = position}).token);
    EXPECT_NEAR(id, u * 131072, 1.0);
  }
}

}  // namespace
}  // namespace hexad
