#include "scheduler/cost/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hexad {
namespace {

CostModel::Coefficients Times(double factor) {
  CostModel::Coefficients times;
  times.per_step *= factor;
  times.per_decode_row *= factor;
  times.per_prefill_token *= factor;
  times.per_context_token *= factor;
  times.per_prefill_context_token *= factor;
  times.per_sampled_row *= factor;
  return times;
}

StepShape Decodes(int32_t rows, int64_t context) { return {rows, 0, rows * context, 0, rows}; }
StepShape Mixed(int32_t rows, int32_t chunk, int64_t position) {
  return {rows, chunk, rows * int64_t{500}, chunk * position + chunk * (chunk + 1) / 2, rows};
}

double RelativeError(const CostModel& model, const CostModel& truth, const StepShape& shape) {
  return std::abs(absl::FDivDuration(model.StepTime(shape), truth.StepTime(shape)) - 1);
}

TEST(CostModel, TheFirstStepsReplaceAGuessThatIsTenTimesOff) {
  for (const double factor : {0.1, 10.0}) {
    const CostModel truth(Times(factor));
    CostModel model;
    EXPECT_FALSE(model.knows_prefill());
    model.Observe(Mixed(0, 20, 0), truth.StepTime(Mixed(0, 20, 0)));
    EXPECT_TRUE(model.knows_prefill());
    EXPECT_LT(RelativeError(model, truth, Mixed(1, 100, 200)), 0.01) << factor;
    EXPECT_LT(RelativeError(model, truth, Decodes(8, 1000)), 0.01) << factor;
  }
}

TEST(CostModel, LearnsOtherProportionsFromVariedSteps) {
  CostModel::Coefficients other;
  other.per_step = absl::Milliseconds(12);
  other.per_decode_row = absl::Microseconds(900);
  other.per_prefill_token = absl::Microseconds(2500);
  other.per_context_token = absl::Nanoseconds(400);
  other.per_prefill_context_token = absl::Nanoseconds(300);
  other.per_sampled_row = absl::ZeroDuration();
  const CostModel truth(other);
  CostModel model;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  for (int i = 0; i < 60; ++i) {
    const int32_t rows = static_cast<int32_t>(random() % 8);
    const StepShape shape =
        i % 2 == 0 ? Decodes(rows + 1, static_cast<int64_t>(random() % 4000))
                   : Mixed(rows, 16 + static_cast<int32_t>(random() % 200), random() % 2000);
    model.Observe(shape, truth.StepTime(shape) * noise(random));
  }
  for (const StepShape& shape :
       {Decodes(1, 100), Decodes(8, 3000), Mixed(1, 32, 1000), Mixed(4, 128, 0)}) {
    EXPECT_LT(RelativeError(model, truth, shape), 0.1);
  }
  EXPECT_LT(model.error(), 0.1);
  EXPECT_EQ(model.accidents(), 0u);
}

TEST(CostModel, CoefficientsAreNeverNegative) {
  CostModel model;
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    const StepShape shape = random() % 2 == 0 ? Decodes(1 + random() % 64, random() % 100000)
                                              : Mixed(random() % 64, 1 + random() % 500, 0);
    model.Observe(shape, absl::Microseconds(1 + random() % 1000000));
    const CostModel::Coefficients got = model.coefficients();
    for (const absl::Duration each :
         {got.per_step, got.per_decode_row, got.per_prefill_token, got.per_context_token,
          got.per_prefill_context_token, got.per_sampled_row}) {
      ASSERT_GE(each, absl::ZeroDuration());
      ASSERT_LT(each, absl::InfiniteDuration());
    }
  }
}

TEST(CostModel, OneStepThatTookTooLongIsAnAccidentTwoAreNews) {
  const CostModel truth(Times(1)), slower(Times(5));
  CostModel model;
  const StepShape shape = Decodes(4, 500);
  for (int i = 0; i < 30; ++i) model.Observe(shape, truth.StepTime(shape));
  model.Observe(shape, absl::Seconds(3));
  EXPECT_LT(RelativeError(model, truth, shape), 0.001);
  EXPECT_EQ(model.accidents(), 1u);
  EXPECT_GT(model.error(), 0.01);  // but it is seen
  for (int i = 0; i < 10; ++i) model.Observe(shape, slower.StepTime(shape));
  EXPECT_LT(RelativeError(model, slower, shape), 0.1);
}

TEST(CostModel, DecodingDoesNotWearAwayWhatIsKnownOfPrompts) {
  CostModel::Coefficients other;
  other.per_prefill_token = absl::Milliseconds(5);
  const CostModel truth(other);
  CostModel model;
  for (int i = 0; i < 20; ++i) {
    const StepShape chunk = Mixed(1, 16 + i, 16 * i);
    model.Observe(chunk, truth.StepTime(chunk));
  }
  for (int i = 0; i < 5000; ++i) {
    const StepShape decode = Decodes(1 + i % 3, 500 + i);
    model.Observe(decode, truth.StepTime(decode));
  }
  EXPECT_LT(RelativeError(model, truth, Mixed(1, 64, 500)), 0.1);
}

TEST(CostModel, UnknownTimesAreIgnored) {
  CostModel model;
  const absl::Duration before = model.StepTime(Decodes(1, 1));
  model.Observe(Decodes(1, 1), absl::ZeroDuration());
  model.Observe(Decodes(1, 1), absl::InfiniteDuration());
  model.Observe({}, absl::Seconds(-1));
  EXPECT_EQ(model.StepTime(Decodes(1, 1)), before);
  EXPECT_EQ(model.error(), 0);
}

}  // namespace
}  // namespace hexad
