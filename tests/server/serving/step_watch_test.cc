#include "server/serving/step_watch.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(StepWatchTest, WithoutAStepNothingIsStuck) {
  StepWatch watch(absl::Seconds(300));
  EXPECT_EQ(watch.NextWake(), absl::InfiniteFuture());
  EXPECT_FALSE(watch.IsStuck(At(1e6)));
}

TEST(StepWatchTest, AStepIsStuckAfterTheLimit) {
  StepWatch watch(absl::Seconds(300));
  watch.Started(At(10));
  watch.Started(At(20));  // the older one counts
  EXPECT_EQ(watch.NextWake(), At(310));
  EXPECT_FALSE(watch.IsStuck(At(309)));
  EXPECT_TRUE(watch.IsStuck(At(310)));
}

TEST(StepWatchTest, TheEndOfAStepStartsTheTimeOfTheNext) {
  StepWatch watch(absl::Seconds(300));
  watch.Started(At(10));
  watch.Started(At(20));
  watch.Ended(At(200), /*steps_in_flight=*/1);
  EXPECT_FALSE(watch.IsStuck(At(400)));
  EXPECT_EQ(watch.NextWake(), At(500));
  watch.Ended(At(410), 0);
  EXPECT_EQ(watch.NextWake(), absl::InfiniteFuture());
}

TEST(StepWatchTest, TimeInWhichNobodyCouldLookDoesNotCount) {
  StepWatch watch(absl::Seconds(300));
  watch.Started(At(10));
  EXPECT_FALSE(watch.IsStuck(At(50'000))) << "the machine was suspended";
  EXPECT_EQ(watch.NextWake(), At(50'300));
  EXPECT_TRUE(watch.IsStuck(At(50'301))) << "and now it is really stuck";
}

}  // namespace
}  // namespace hexad
