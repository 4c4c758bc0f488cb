#include "server/bench/kernel_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/thread_team.h"
#include "server/bench/kernel_runs.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

std::vector<KernelCase> Select(const KernelFilter& filter) {
  auto cases = SelectKernels(filter);
  EXPECT_TRUE(cases.ok()) << cases.status();
  return cases.ok() ? *std::move(cases) : std::vector<KernelCase>{};
}

TEST(KernelCases, AllIsEverything) {
  KernelFilter filter;
  filter.models = "all";
  filter.formats = "all";
  filter.tokens = "all";
  filter.activations = "int8,f32";
  std::set<KernelOp> ops;
  std::set<std::string> models;
  std::set<DType> formats;
  for (const KernelCase& one : Select(filter)) {
    ops.insert(one.op);
    models.insert(one.model->name);
    if (!IsProduct(one.op)) continue;
    formats.insert(one.format);
    EXPECT_EQ(ProductShape(one.op, *one.model).in % Info(one.format).block_values, 0);
    const bool floats = one.format == DType::kF32 || one.format == DType::kF16;
    if (floats) {
      EXPECT_EQ(one.activations, Activations::kF32);
    }
  }
  EXPECT_EQ(static_cast<int>(ops.size()), kKernelOps);
  EXPECT_EQ(models.size(), KernelModels().size());
  EXPECT_EQ(formats.size(), 14u);
}

TEST(KernelCases, Filters) {
  KernelFilter filter;
  filter.ops = "ffn-down,team";
  filter.formats = "q4_k,bf16";
  filter.models = "llama1b";
  filter.tokens = "3";
  const std::vector<KernelCase> cases = Select(filter);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].format, DType::kQ4_K);
  EXPECT_EQ(cases[0].tokens, 3);
  EXPECT_EQ(cases[1].format, DType::kBF16);
  EXPECT_EQ(cases[2].op, KernelOp::kTeam);
}

TEST(KernelCases, SaysWhatThereIs) {
  for (const auto& [field, says] : std::vector<std::pair<std::string KernelFilter::*, std::string>>{
           {&KernelFilter::ops, "ffn-gated"},
           {&KernelFilter::models, "gemma-270m"},
           {&KernelFilter::formats, "IQ4_NL"},
           {&KernelFilter::activations, "int8 or f32"},
           {&KernelFilter::tokens, "numbers up to"}}) {
    KernelFilter filter;
    filter.*field = "nothing";
    const auto cases = SelectKernels(filter);
    ASSERT_FALSE(cases.ok());
    EXPECT_THAT(std::string(cases.status().message()), HasSubstr(says));
  }
}

TEST(KernelCases, WorkOfProductsAndAttention) {
  const KernelModel& qwen = KernelModels()[0];
  const Work product = WorkOf({KernelOp::kFfnDown, &qwen, DType::kQ8_0, Activations::kInt8, 4});
  EXPECT_EQ(product.bytes, 4864.0 * 896 / 32 * 34);
  EXPECT_EQ(product.int8_ops, 2.0 * 4864 * 896 * 4);
  EXPECT_EQ(product.fp32_ops + product.int4_ops, 0);
  const Work decode =
      WorkOf({KernelOp::kAttentionDecode, &qwen, DType::kF16, Activations::kF32, 2});
  EXPECT_EQ(decode.bytes, 2.0 * 2 * 4096 * 2 * 64 * 2);
  EXPECT_EQ(decode.fp32_ops, 4.0 * 2 * 4096 * 14 * 64);
}

TEST(KernelRuns, EveryOpRuns) {
  KernelFilter filter;
  filter.models = "smollm2-135m";
  filter.formats = "Q4_0,F16";
  filter.tokens = "2";
  std::vector<KernelCase> cases = Select(filter);
  // The vocabulary takes long under sanitizers; the product is the same.
  std::erase_if(cases, [](const KernelCase& one) {
    return one.op == KernelOp::kLogits && one.format != DType::kQ4_0;
  });
  ThreadTeam team(2);
  size_t reported = 0;
  RunKernels(cases, 0.0, team, [&](const KernelCase& one, const KernelTiming& time) {
    ASSERT_LT(reported, cases.size());
    EXPECT_EQ(one.op, cases[reported++].op);
    EXPECT_GT(time.median, 0);
    EXPECT_LE(time.best, time.median);
    EXPECT_EQ(time.calls, 3);
  });
  EXPECT_EQ(reported, cases.size());
}

}  // namespace
}  // namespace hexad
