#include "engine/sampling/philox.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace hexad {
namespace {

// The known answers that Random123 publishes for philox4x32-10.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, UniformOverPositionsAndOverSeeds) {
  constexpr int kBins = 64;
  constexpr int kDraws = 64000;
  for (const bool over_seeds : {false, true}) {
    std::vector<int> counts(kBins);
    for (int i = 0; i < kDraws; ++i) {
      const double u = over_seeds ? UniformAt(static_cast<uint64_t>(i), 5)
                                  : UniformAt(42, static_cast<uint64_t>(i));
      ASSERT_GE(u, 0.0);
      ASSERT_LT(u, 1.0);
      ++counts[static_cast<size_t>(u * kBins)];
    }
    double chi_square = 0;
    for (const int count : counts) {
      const double expected = static_cast<double>(kDraws) / kBins;
      chi_square += (count - expected) * (count - expected) / expected;
    }
    EXPECT_LT(chi_square, 103.4);  // 63 degrees of freedom, p = 0.001
  }
}

TEST(PhiloxTest, AllBitsOfSeedAndPositionCount) {
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(UniformAt(uint64_t{1} << bit, 0), UniformAt(0, 0));
    EXPECT_NE(UniformAt(0, uint64_t{1} << bit), UniformAt(0, 0));
  }
}

}  // namespace
}  // namespace hexad
