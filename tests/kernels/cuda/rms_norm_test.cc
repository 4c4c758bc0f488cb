// The CUDA kernels, run on the CPU by kernels/shim, against plain loops.

#include "kernels/cuda/rms_norm.cuh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace hexad::cuda {
namespace {

std::vector<float> RandomValues(size_t count, float scale, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> Plain(const std::vector<float>& x, const std::vector<float>& weight,
                         float epsilon) {
  const size_t size = weight.size();
  std::vector<float> out(x.size());
  for (size_t row = 0; row < x.size(); row += size) {
    double squares = 0.0;
    for (size_t i = 0; i < size; ++i) squares += double{x[row + i]} * x[row + i];
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(size) + double{epsilon});
    for (size_t i = 0; i < size; ++i) {
      out[row + i] = static_cast<float>(x[row + i] * scale * weight[i]);
    }
  }
  return out;
}

std::vector<float> OnShim(const std::vector<float>& x, const std::vector<float>& weight,
                          float epsilon, shim::ThreadOrder order, uint64_t seed) {
  shim::Stream stream(order, seed);
  std::vector<float> out(x.size(), std::nanf(""));
  RmsNorm(&stream, x.data(), weight.data(), out.data(),
          static_cast<int32_t>(x.size() / weight.size()), static_cast<int32_t>(weight.size()),
          epsilon);
  EXPECT_EQ(stream.error(), "");
  return out;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

struct Case {
  int32_t rows, size;
  float scale, epsilon;
};

class RmsNormTest : public ::testing::TestWithParam<Case> {};

// Sizes below, at and above the block's 256 threads, odd ones, and those of real models.
INSTANTIATE_TEST_SUITE_P(Shapes, RmsNormTest,
                         ::testing::Values(Case{0, 8, 1.0f, 1e-5f}, Case{1, 1, 1.0f, 1e-5f},
                                           Case{3, 31, 1.0f, 1e-6f}, Case{2, 255, 10.0f, 1e-5f},
                                           Case{2, 256, 1.0f, 1e-5f}, Case{2, 257, 1.0f, 1e-5f},
                                           Case{5, 640, 1e-3f, 1e-6f}, Case{2, 2048, 100.0f, 1e-5f},
                                           Case{1, 4097, 1.0f, 1e-5f}));

TEST_P(RmsNormTest, AgreesWithPlainLoopsInEveryThreadOrder) {
  const Case c = GetParam();
  std::mt19937_64 random(7);
  const std::vector<float> x = RandomValues(size_t{1} * c.rows * c.size, c.scale, random);
  const std::vector<float> weight = RandomValues(c.size, 1.0f, random);
  const std::vector<float> want = Plain(x, weight, c.epsilon);
  const std::vector<float> got = OnShim(x, weight, c.epsilon, shim::ThreadOrder::kForward, 0);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 2e-6f * std::abs(want[i]) + 1e-12f) << i;
  }
  // Not only close: the order of the threads must not show at all.
  EXPECT_TRUE(SameBits(got, OnShim(x, weight, c.epsilon, shim::ThreadOrder::kReverse, 0)));
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_TRUE(SameBits(got, OnShim(x, weight, c.epsilon, shim::ThreadOrder::kRandom, seed)));
  }
}

TEST(RmsNormTest, ARowHasTheSameBitsInAnyBatch) {
  std::mt19937_64 random(11);
  const std::vector<float> x = RandomValues(6 * 384, 1.0f, random);
  const std::vector<float> weight = RandomValues(384, 1.0f, random);
  const std::vector<float> batch = OnShim(x, weight, 1e-5f, shim::ThreadOrder::kRandom, 5);
  for (int row = 0; row < 6; ++row) {
    const std::vector<float> alone(x.begin() + row * 384, x.begin() + (row + 1) * 384);
    EXPECT_TRUE(SameBits({batch.begin() + row * 384, batch.begin() + (row + 1) * 384},
                         OnShim(alone, weight, 1e-5f, shim::ThreadOrder::kForward, 0)));
  }
}

TEST(RmsNormTest, WorksInPlace) {
  std::mt19937_64 random(13);
  std::vector<float> x = RandomValues(3 * 300, 1.0f, random);
  const std::vector<float> weight = RandomValues(300, 1.0f, random);
  const std::vector<float> want = OnShim(x, weight, 1e-5f, shim::ThreadOrder::kForward, 0);
  shim::Stream stream(shim::ThreadOrder::kRandom, 3);
  RmsNorm(&stream, x.data(), weight.data(), x.data(), 3, 300, 1e-5f);
  EXPECT_EQ(stream.error(), "");
  EXPECT_TRUE(SameBits(x, want));
}

TEST(RmsNormTest, ZerosStayZerosAndNanStaysInItsRow) {
  std::vector<float> x(2 * 64, 0.0f);
  x[64] = std::nanf("");
  const std::vector<float> out =
      OnShim(x, std::vector<float>(64, 1.0f), 1e-5f, shim::ThreadOrder::kForward, 0);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], 0.0f);
  for (int i = 64; i < 128; ++i) EXPECT_TRUE(std::isnan(out[i]));
}

}  // namespace
}  // namespace hexad::cuda
