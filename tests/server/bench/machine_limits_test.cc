#include "server/bench/machine_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/bench/bench_values.h"
#include "server/bench/peak_loops.h"

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MachineLimits Limits() { return {2, 40e9, 200e9, 400e9, 600e9}; }

TEST(MachineLimits, TheSlowerOfMemoryAndArithmetic) {
  Work work;
  AddProduct(DType::kQ4_0, Activations::kInt8, 32e9, 1, work);  // 18 GB, 64 G op
  EXPECT_DOUBLE_EQ(LimitSeconds(work, Limits()), 0.45);
  EXPECT_STREQ(LimitName(work, Limits()), "memory");
  AddProduct(DType::kQ8_0, Activations::kInt8, 32, 5e9, work);  // 320 G op
  EXPECT_NEAR(LimitSeconds(work, Limits()), 0.8 + 64.0 / 600, 1e-6);
  EXPECT_STREQ(LimitName(work, Limits()), "compute");
}

TEST(MachineLimits, OperationsByArithmetic) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF32}) {
    Work work;
    AddProduct(type, Activations::kInt8, 64, 1, work);
    EXPECT_EQ(work.fp32_ops, 128);
  }
  Work work;
  AddProduct(DType::kQ4_K, Activations::kInt8, 256, 1, work);
  AddProduct(DType::kQ6_K, Activations::kInt8, 256, 2, work);
  AddProduct(DType::kQ6_K, Activations::kF32, 256, 3, work);
  EXPECT_EQ(work.int4_ops, 512);
  EXPECT_EQ(work.int8_ops, 1024);
  EXPECT_EQ(work.fp32_ops, 1536);
  EXPECT_EQ(work.ops(), 3072);
}

TEST(MachineLimits, WhatWasNotMeasuredLimitsNothing) {
  MachineLimits limits = Limits();
  limits.int4_ops = 0;
  Work work;
  AddProduct(DType::kQ4_0, Activations::kInt8, 32, 1e9, work);
  EXPECT_NEAR(LimitSeconds(work, limits), 18 / 40e9, 1e-15);
  EXPECT_THAT(LimitsTable(limits), HasSubstr("4-bit dot not measured"));
  EXPECT_THAT(LimitsJson(limits), HasSubstr("\"int8_ops_per_second\":4e+11"));
}

TEST(PeakLoops, RunWhereTheyAre) {
  const PeakLoops loops = BestPeakLoops();
  for (const PeakLoop& loop : {loops.fp32, loops.int8, loops.int4}) {
    if (loop.run == nullptr) continue;
    loop.run(3);
    EXPECT_GT(loop.ops_per_round, 0);
  }
  EXPECT_NE(loops.fp32.run, nullptr);
  const std::vector<std::byte> data(4096);
  ReadFourStreams(data.data(), static_cast<int64_t>(data.size()));
}

TEST(BenchValues, Parse) {
  EXPECT_EQ(ParseDType("q4_k").value(), DType::kQ4_K);
  EXPECT_EQ(ParseDType("BF16").value(), DType::kBF16);
  EXPECT_THAT(std::string(ParseDType("q9").status().message()), HasSubstr("Q5_1"));
  EXPECT_FALSE(ParseActivations("int4").ok());
  EXPECT_EQ(ParseThreads(3).value(), 3);
  EXPECT_GE(ParseThreads(0).value(), 1);
  EXPECT_FALSE(ParseThreads(-1).ok());
  EXPECT_FALSE(ParseThreads(1025).ok());
  EXPECT_THAT(SplitList("a,b"), ElementsAre("a", "b"));
  EXPECT_THAT(SplitList(""), ElementsAre());
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1}), 2.5);
}

}  // namespace
}  // namespace hexad
