#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

constexpr int64_t kSizes[] = {1, 7, 8, 9, 31, 64, 100, 576, 20001};

void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected,
                 double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], relative * std::fabs(expected[i]) + 1e-30) << "value " << i;
  }
}

TEST(RmsNorm, EqualsReference) {
  RandomData random(1);
  ThreadTeam team(2);
  for (const int64_t dim : kSizes) {
    const int64_t rows = random.Integer(1, 5);
    const std::vector<float> x = random.Floats(rows * dim, 3), weight = random.Floats(dim);
    std::vector<float> actual(x.size()), expected(x.size()), portable(x.size());
    for (const float* w : {weight.data(), static_cast<const float*>(nullptr)}) {
      RmsNorm(x.data(), w, 1.0f, 1e-5f, rows, dim, actual.data(), team);
      reference::RmsNorm(x.data(), w, 1.0f, 1e-5f, rows, dim, expected.data());
      ExpectClose(actual, expected, 2e-6);
      for (int64_t r = 0; r < rows; ++r) {
        cpu::kPortableKernels.rms_norm(x.data() + r * dim, w, 1.0f, 1e-5f, dim,
                                       portable.data() + r * dim);
      }
      ExpectClose(portable, expected, 2e-6);
    }
  }
}

// Values around zero, where tanh and exp cancel, and far out, where they saturate.
std::vector<float> Steep(RandomData& random, int64_t count) {
  std::vector<float> x = random.Floats(count);
  for (int64_t i = 0; i < count; ++i) x[i] *= std::pow(10.0f, static_cast<float>(i % 9) - 6);
  return x;
}

TEST(Activations, EqualReference) {
  RandomData random(2);
  ThreadTeam team(2);
  for (const int64_t n : kSizes) {
    const std::vector<float> gate = Steep(random, n), up = random.Floats(n);
    std::vector<float> actual(gate.size()), expected(gate.size());
    SiluGate(gate.data(), up.data(), n, actual.data(), team);
    reference::SiluGate(gate.data(), up.data(), n, expected.data());
    for (size_t i = 0; i < actual.size(); ++i) {  // far left of zero exp has no more digits
      ASSERT_NEAR(actual[i], expected[i], 1e-6 * std::fabs(expected[i]) + 1e-30) << gate[i];
    }
    cpu::kPortableKernels.silu_gate(gate.data(), up.data(), n, actual.data());
    ExpectClose(actual, expected, 1e-6);
    GeluGate(gate.data(), up.data(), n, actual.data(), team);
    reference::GeluGate(gate.data(), up.data(), n, expected.data());
    for (size_t i = 0; i < actual.size(); ++i) {
      // The reference itself cancels on the left: there only the size of gate counts.
      const double scale = std::fabs(double{gate[i]} * up[i]);
      ASSERT_NEAR(actual[i], expected[i], 1e-6 * scale + 1e-30) << gate[i];
    }
    std::vector<float> capped = gate, capped_expected = gate;
    Softcap(capped.data(), 30.0f, n, team);
    reference::Softcap(capped_expected.data(), 30.0f, n);
    ExpectClose(capped, capped_expected, 2e-6);
  }
}

TEST(Activations, SaturateWithoutNan) {
  ThreadTeam team(1);
  const std::vector<float> gate = {-1e30f, -200.0f, -90.0f, 0.0f, 90.0f, 200.0f, 1e30f, -INFINITY};
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> out(gate.size());
  SiluGate(gate.data(), up.data(), 7, out.data(), team);
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(out[i], std::max(0.0f, gate[i]), 1e-30) << gate[i];
  std::vector<float> capped = gate;
  Softcap(capped.data(), 30.0f, 8, team);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(capped[i], 30.0 * std::tanh(gate[i] / 30.0), 1e-5);
  EXPECT_EQ(capped[0], -30.0f);
  EXPECT_EQ(capped[6], 30.0f);
  EXPECT_EQ(capped[7], -30.0f);
}

TEST(Sums, EqualReference) {
  RandomData random(3);
  ThreadTeam team(2);
  for (const int64_t n : kSizes) {
    const std::vector<float> x = random.Floats(3 * n), y = random.Floats(3 * n);
    std::vector<float> actual = x, expected = x;
    AddInPlace(actual.data(), y.data(), 3 * n, team);
    AddBias(actual.data(), y.data(), 3, n, team);
    Scale(actual.data(), 0.3f, 3 * n, team);
    reference::AddInPlace(expected.data(), y.data(), 3 * n);
    reference::AddBias(expected.data(), y.data(), 3, n);
    reference::Scale(expected.data(), 0.3f, 3 * n);
    EXPECT_EQ(actual, expected);
  }
}

TEST(Rope, EqualsReference) {
  RandomData random(4);
  ThreadTeam team(2);
  for (const RopeKind kind : {RopeKind::kInterleaved, RopeKind::kHalves}) {
    for (const int64_t head_dim : {8, 64, 128}) {
      const int64_t rope_dim = head_dim == 128 ? 96 : head_dim;  // partial rotation too
      const std::vector<float> factors(static_cast<size_t>(rope_dim / 2), 2.0f);
      const std::vector<float> frequencies =
          RopeFrequencies(rope_dim, 10000.0, 0.5, head_dim == 64 ? factors.data() : nullptr);
      const std::vector<int64_t> positions = {0, 1, 77, 4095, 1000000};
      const int64_t rows = 5, heads = 3, pairs = rope_dim / 2;
      std::vector<float> table(static_cast<size_t>(rows * rope_dim));
      std::vector<float> actual = random.Floats(rows * heads * head_dim), expected = actual;
      RopeTable(positions.data(), rows, frequencies.data(), pairs, 1.1f, table.data(), team);
      Rope(kind, table.data(), pairs, rows, heads, head_dim, actual.data(), team);
      reference::Rope(kind, positions.data(), frequencies.data(), pairs, 1.1f, rows, heads,
                      head_dim, expected.data());
      EXPECT_LT(LargestDifference(actual, expected), 2e-6);
    }
  }
}

TEST(RopeFrequencies, FollowThePaper) {
  const std::vector<float> factors = {1.0f, 4.0f};
  const std::vector<float> f = RopeFrequencies(4, 10000.0, 0.125, factors.data());
  ASSERT_EQ(f.size(), 2u);
  EXPECT_FLOAT_EQ(f[0], 0.125f);
  EXPECT_FLOAT_EQ(f[1], 0.01f * 0.125f / 4);
}

}  // namespace
}  // namespace hexad
