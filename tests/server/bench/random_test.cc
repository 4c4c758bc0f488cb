#include "server/bench/random.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

TEST(BenchRandom, KnownNumbersOfSplitmix64) {
  BenchRandom random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
}

double Mean(const LengthDistribution& distribution) {
  BenchRandom random(5);
  double sum = 0;
  for (int i = 0; i < 20000; ++i) sum += static_cast<double>(distribution.Sample(random));
  return sum / 20000;
}

TEST(LengthDistribution, MeansAreAsAsked) {
  EXPECT_EQ(Mean(*LengthDistribution::Parse("128")), 128);
  EXPECT_NEAR(Mean(*LengthDistribution::Parse("uniform:10:20")), 15, 0.2);
  EXPECT_NEAR(Mean(*LengthDistribution::Parse("normal:500:50")), 500, 2);
  EXPECT_NEAR(Mean(*LengthDistribution::Parse("exponential:300")), 300, 8);
  EXPECT_NEAR(Mean(*LengthDistribution::Parse("lognormal:100:0.5")), 100 * 1.1331, 2);
}

TEST(LengthDistribution, StaysInItsBounds) {
  BenchRandom random(5);
  const auto uniform = *LengthDistribution::Parse("uniform:3:5");
  const auto wide = *LengthDistribution::Parse("normal:2:1000000");
  for (int i = 0; i < 2000; ++i) {
    const int64_t length = uniform.Sample(random);
    EXPECT_TRUE(length >= 3 && length <= 5) << length;
    EXPECT_GE(wide.Sample(random), 1);
    EXPECT_LE(wide.Sample(random), 4 << 20);
  }
}

TEST(LengthDistribution, BadTextsAreRefused) {
  for (const char* text : {"", "x", "0", "-5", "1e300", "nan", "uniform:5", "uniform:5:3",
                           "normal:5", "normal:5:x", "poisson:3", "uniform:1:2:3", "12 ", ":"}) {
    EXPECT_FALSE(LengthDistribution::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace hexad
