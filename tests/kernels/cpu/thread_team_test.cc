#include "kernels/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace hexad {
namespace {

TEST(ThreadTeam, CoversEveryItemOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadTeam team(threads, threads == 2);
    ASSERT_EQ(team.threads(), threads);
    for (const int64_t items : {0, 1, 2, 7, 100, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(items));
        team.ParallelFor(items, grain, [&](int64_t begin, int64_t end, int thread) {
          EXPECT_EQ(begin % grain, 0);
          EXPECT_LE(end - begin, grain);
          EXPECT_GE(thread, 0);
          EXPECT_LT(thread, threads);
          for (int64_t i = begin; i < end; ++i) seen[i].fetch_add(1);
        });
        for (const std::atomic<int>& count : seen) ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

// Thousands of short jobs: late joiners, sleepers and leavers meet every state of the hand-over.
TEST(ThreadTeam, ManyShortJobsSeeTheirOwnData) {
  ThreadTeam team(4);
  std::vector<int64_t> values(16);
  for (int64_t job = 0; job < 3000; ++job) {
    team.ParallelFor(16, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[i] = job * 16 + i;
    });
    for (int64_t i = 0; i < 16; ++i) ASSERT_EQ(values[i], job * 16 + i);
  }
}

TEST(ThreadTeam, AThreadIndexIsUsedByOneThreadAtATime) {
  ThreadTeam team(3);
  std::vector<std::atomic<int>> busy(3);
  std::atomic<int> clashes{0};
  for (int job = 0; job < 200; ++job) {
    team.ParallelFor(64, 1, [&](int64_t, int64_t, int thread) {
      if (busy[thread].fetch_add(1) != 0) clashes.fetch_add(1);
      busy[thread].fetch_sub(1);
    });
  }
  EXPECT_EQ(clashes.load(), 0);
}

TEST(ThreadTeam, WhatFitsOnePieceIsNotHandedOver) {
  ThreadTeam team(3);
  const auto nothing = [](int64_t, int64_t, int thread) { EXPECT_EQ(thread, 0); };
  for (int i = 0; i < 10; ++i) team.ParallelFor(8, 8, nothing);
  EXPECT_EQ(team.counters().hand_overs, 0);
  team.ParallelFor(9, 8, [](int64_t, int64_t, int) {});
  EXPECT_EQ(team.counters().hand_overs, 1);
}

// A member that holds its pieces far too long comes to rest sooner or later (how soon is the
// clock's affair, see late_members_test.cc); with it or without, and at its return, all items are
// computed.
TEST(ThreadTeam, ComputesAllItemsWhetherMembersRestOrNot) {
  ThreadTeam team(3);
  for (int job = 0; job < 100; ++job) {
    std::atomic<int64_t> done{0};
    const auto begun = std::chrono::steady_clock::now();
    team.ParallelFor(64, 1, [&](int64_t begin, int64_t end, int thread) {
      while (thread != 0 && job < 80 &&
             std::chrono::steady_clock::now() - begun < std::chrono::microseconds(300)) {
      }
      done.fetch_add(end - begin);
    });
    ASSERT_EQ(done.load(), 64);
    ASSERT_LE(team.counters().resting, 2);
    ASSERT_LE(team.counters().resting, team.counters().rests);
  }
}

TEST(ThreadTeam, StopsWithoutAJob) {
  for (int i = 0; i < 50; ++i) ThreadTeam team(1 + i % 5);
}

}  // namespace
}  // namespace hexad
