#include "kernels/late_members.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hexad {
namespace {

constexpr int64_t kJob = 100'000;

// Jobs of kJob from `now` on, each late by `late` for `last`, until a member rests or `end`.
bool RunJobs(LateMembers& late, int64_t& now, int64_t end, int64_t each_late, int last) {
  while (now < end) {
    now += kJob;
    if (late.Judge(now, kJob, each_late, last)) return true;
  }
  return false;
}

TEST(LateMembers, ShortWaitsAreLeftAlone) {
  LateMembers late(2);
  int64_t now = 0;
  EXPECT_FALSE(RunJobs(late, now, 1'000'000'000, kJob / 4, 1));
  EXPECT_FALSE(RunJobs(late, now, 2'000'000'000, 0, 0));
  EXPECT_EQ(late.active(), 2);
}

TEST(LateMembers, AMemberThatCostsMoreThanItBringsRestsLongerEachTime) {
  LateMembers late(2);
  int64_t now = 0, rest = LateMembers::kShortestRest;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(RunJobs(late, now, now + 2 * LateMembers::kWindow, kJob / 2, 1));
    EXPECT_EQ(late.rested(), 1);
    EXPECT_TRUE(late.resting(1));
    EXPECT_EQ(late.active(), 1);
    EXPECT_EQ(late.rests(), i + 1);
    EXPECT_EQ(late.Return(now + rest - 1), 0);
    now += rest;
    EXPECT_EQ(late.Return(now), 1);
    EXPECT_EQ(late.active(), 2);
    rest = std::min(2 * rest, LateMembers::kLongestRest);
  }
  // Good windows shorten the next rest again.
  EXPECT_FALSE(RunJobs(late, now, now + 12 * LateMembers::kWindow, 0, 0));
  ASSERT_TRUE(RunJobs(late, now, now + 2 * LateMembers::kWindow, kJob / 2, 1));
  EXPECT_EQ(late.Return(now + LateMembers::kShortestRest), 1);
}

TEST(LateMembers, TheMostBlamedOneOfManyRests) {
  LateMembers late(8);
  int64_t now = 0;
  bool rested = false;
  for (int i = 0; !rested && i < 1000; ++i) {
    now += kJob;
    rested = late.Judge(now, kJob, kJob / 3, i % 4 == 0 ? 2 : 5);
  }
  EXPECT_TRUE(rested);
  EXPECT_EQ(late.rested(), 5);
  EXPECT_EQ(late.active(), 7);
  EXPECT_FALSE(late.resting(2));
}

// A job that began before it noticed may have it as its last one.
TEST(LateMembers, AMemberThatRestsAlreadyIsNotSentToRestAgain) {
  LateMembers late(3);
  int64_t now = 0;
  ASSERT_TRUE(RunJobs(late, now, 1'000'000'000, kJob, 1));
  EXPECT_FALSE(late.Judge(now, 10 * kJob, 2 * LateMembers::kWindow, 1));
  EXPECT_FALSE(late.Judge(now, 2 * LateMembers::kWindow, 2 * LateMembers::kWindow, 1));
  EXPECT_EQ(late.active(), 2);
  EXPECT_EQ(late.rests(), 1);
  EXPECT_EQ(late.Return(now + LateMembers::kShortestRest), 1);
  EXPECT_EQ(late.active(), 3);
}

TEST(LateMembers, TheCallerNeverRests) {
  LateMembers late(3);
  int64_t now = 0;
  EXPECT_FALSE(RunJobs(late, now, 1'000'000'000, kJob, 0));
}

}  // namespace
}  // namespace hexad
