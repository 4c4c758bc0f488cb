#include "kvcache/core/replica_kv.h"

#include <gtest/gtest.h>

#include "kvcache/core/keys.h"

namespace hexad {
namespace {

KvLayout Layout(std::vector<int32_t> windows, int32_t block_tokens = 16) {
  KvLayout layout;
  layout.block_tokens = block_tokens;
  for (int32_t window : windows) {
    KvGroup group;
    group.kind = window == 0 ? GroupKind::kFull : GroupKind::kWindow;
    group.window_tokens = window;
    layout.groups.push_back(group);
  }
  return layout;
}

std::vector<ContentKey> Keys(int32_t num_tokens, int32_t story = 0) {
  std::vector<TokenId> tokens(num_tokens, TokenId{story});
  return UnitKeys(ContentKey{}, tokens);
}

// Opens, computes and commits all of a story, and returns its table.
TableId Compute(ReplicaKv& kv, int32_t num_tokens, int32_t story = 0) {
  const OpenResult opened = kv.Open(Keys(num_tokens, story), num_tokens);
  EXPECT_TRUE(kv.Grow(opened.table, num_tokens));
  kv.Commit(opened.table, num_tokens, Keys(num_tokens, story));
  kv.CheckInvariants();
  return opened.table;
}

TEST(ReplicaKv, OpensTheLongestPrefixButLeavesOneTokenToCompute) {
  ReplicaKv kv(Layout({0}), {10});
  kv.Close(Compute(kv, 64));
  EXPECT_EQ(kv.Open(Keys(64), 64).ready_tokens, 48);
  EXPECT_EQ(kv.Open(Keys(64), 65).ready_tokens, 64);
  EXPECT_EQ(kv.Open(Keys(160), 160).ready_tokens, 64);
  EXPECT_EQ(kv.Open(Keys(64, 1), 64).ready_tokens, 0);
  kv.CheckInvariants();
}

TEST(ReplicaKv, ABlockOfSeveralUnitsIsSharedWhole) {
  ReplicaKv kv(Layout({0}, 32), {10});
  kv.Close(Compute(kv, 80));
  EXPECT_EQ(kv.Open(Keys(80), 80).ready_tokens, 64);
  EXPECT_EQ(kv.Open(Keys(48), 49).ready_tokens, 32);
}

TEST(ReplicaKv, AWindowGroupNeedsOnlyTheEndOfThePrefix) {
  ReplicaKv kv(Layout({0, 20}), {20, 4});
  const TableId table = kv.Open(Keys(160), 160).table;
  for (int32_t computed = 16; computed <= 160; computed += 16) {
    ASSERT_TRUE(kv.Grow(table, computed));
    kv.Commit(table, computed, Keys(160));
    kv.CheckInvariants();
    // 19 tokens below the next one are seen.
    EXPECT_EQ(kv.first_block(table, 1), static_cast<uint32_t>(std::max(0, computed - 19) / 16));
  }
  kv.Close(table);
  EXPECT_EQ(kv.Open(Keys(160), 161).ready_tokens, 160);
  // At 64 the window's blocks are gone, so that nothing up to there is usable.
  EXPECT_EQ(kv.Open(Keys(64), 65).ready_tokens, 0);
}

TEST(ReplicaKv, GrowsInAllGroupsOrInNone) {
  ReplicaKv kv(Layout({0, 32}), {10, 2});
  const TableId table = kv.Open({}, 100).table;
  EXPECT_EQ(kv.MaxGrow(table, 100), 32);
  EXPECT_EQ(kv.MaxGrow(table, 30), 30);
  EXPECT_TRUE(kv.CanGrowUnbounded(table, 160));
  EXPECT_FALSE(kv.CanGrowUnbounded(table, 161));
  EXPECT_FALSE(kv.Grow(table, 33));
  EXPECT_EQ(kv.pool(0).available(), 10u);
  EXPECT_TRUE(kv.Grow(table, 32));
  EXPECT_TRUE(kv.blocks(table, 1).size() == 2);
  kv.CheckInvariants();
}

TEST(ReplicaKv, ClosingDuringAStepKeepsTheBlocksUntilItEnds) {
  ReplicaKv kv(Layout({0}), {4});
  const TableId table = kv.Open({}, 40).table;
  ASSERT_TRUE(kv.Grow(table, 40));
  kv.BeginStep(std::vector<TableId>{table});
  kv.BeginStep(std::vector<TableId>{table});
  kv.Close(table);
  EXPECT_EQ(kv.pool(0).available(), 1u);
  EXPECT_EQ(kv.returning_blocks(0), 3u);
  kv.CheckInvariants();
  kv.EndStep();
  EXPECT_EQ(kv.pool(0).available(), 1u);
  kv.EndStep();
  EXPECT_EQ(kv.pool(0).available(), 4u);
  EXPECT_EQ(kv.returning_blocks(0), 0u);
  kv.CheckInvariants();
}

// The end of a long sequence is spread over the steps that follow, unless its room is needed.
TEST(ReplicaKv, ALongTableGoesBackInPartsOrAtOnceWhenItsBlocksAreMissed) {
  constexpr uint32_t kLong = 5000, kPool = kLong + 10;
  for (const bool missed : {false, true}) {
    ReplicaKv kv(Layout({0}), {kPool});
    const TableId other = kv.Open({}, 1).table;
    const TableId table = kv.Open({}, kLong * 16).table;
    ASSERT_TRUE(kv.Grow(table, kLong * 16));
    kv.BeginStep(std::vector<TableId>{table});
    kv.BeginStep(std::vector<TableId>{other});
    kv.BeginStep(std::vector<TableId>{other});
    kv.Close(table);
    kv.EndStep();
    kv.CheckInvariants();
    EXPECT_GT(kv.pool(0).available(), 10u);
    EXPECT_LT(kv.pool(0).available(), kPool);
    EXPECT_EQ(kv.pool(0).available() + kv.returning_blocks(0), kPool);
    if (missed) {
      EXPECT_TRUE(kv.Grow(other, kLong * 16));
      EXPECT_EQ(kv.returning_blocks(0), 0u);
    } else {
      EXPECT_TRUE(kv.Grow(other, 16));
      kv.EndStep();
      EXPECT_GT(kv.returning_blocks(0), 0u);
      kv.EndStep();  // nothing is in flight any more
      EXPECT_EQ(kv.returning_blocks(0), 0u);
      EXPECT_EQ(kv.pool(0).available(), kPool - 1);
    }
    kv.CheckInvariants();
  }
}

TEST(ReplicaKv, AGuessIsUsedAsFarAsItStillHolds) {
  ReplicaKv kv(Layout({0, 20}), {8, 8});
  kv.Close(Compute(kv, 96));
  const PrefixGuess guess = kv.Probe(Keys(96), 97);
  ASSERT_EQ(guess.size(), 2u);
  EXPECT_EQ(guess[0].size(), 6u);
  const TableId whole = kv.Open(Keys(96), 97, guess).table;
  EXPECT_EQ(kv.ready_tokens(whole), 96);
  kv.Close(whole);
  // Others take the tail's place; what is left is found, whatever the guess says.
  const TableId other = kv.Open({}, 80).table;
  ASSERT_TRUE(kv.Grow(other, 80));
  const OpenResult left = kv.Open(Keys(96), 97, guess);
  const OpenResult sought = kv.Open(Keys(96), 97);
  EXPECT_EQ(left.ready_tokens, sought.ready_tokens);
  EXPECT_LT(left.ready_tokens, 96);
  kv.CheckInvariants();
}

TEST(ReplicaKv, TheTailIsEvictedBeforeThePrefix) {
  ReplicaKv kv(Layout({0}), {4});
  kv.Close(Compute(kv, 64));
  const TableId other = kv.Open({}, 20).table;
  ASSERT_TRUE(kv.Grow(other, 20));
  EXPECT_EQ(kv.Open(Keys(64), 65).ready_tokens, 32);
}

TEST(ReplicaKv, TwoThatComputedTheSameKeepOneToShare) {
  ReplicaKv kv(Layout({0}), {4});
  const OpenResult first = kv.Open(Keys(17), 17);
  const OpenResult second = kv.Open({}, 17);  // without keys: it does not know
  ASSERT_TRUE(kv.Grow(first.table, 17) && kv.Grow(second.table, 17));
  kv.Commit(first.table, 17, Keys(17));
  kv.Commit(second.table, 17, Keys(17));
  const BlockId kept = kv.blocks(first.table, 0)[0];
  kv.Close(first.table);
  kv.Close(second.table);
  EXPECT_EQ(kv.pool(0).cached(), 1u);
  EXPECT_EQ(kv.blocks(kv.Open(Keys(17), 17).table, 0)[0], kept);
  kv.CheckInvariants();
}

TEST(ReplicaKv, AFollowerTakesBlocksAsTheyAreCommitted) {
  ReplicaKv kv(Layout({0, 20}), {20, 8});
  const TableId producer = kv.Open(Keys(64), 70).table;
  const OpenResult follower = kv.Open(Keys(64), 66);
  EXPECT_EQ(follower.ready_tokens, 0);
  EXPECT_EQ(follower.promised_tokens, 64);
  EXPECT_EQ(kv.producer(follower.table), producer);
  ASSERT_TRUE(kv.Grow(producer, 70));
  kv.Commit(producer, 40, Keys(64));
  EXPECT_EQ(kv.ready_tokens(follower.table), 32);
  EXPECT_TRUE(kv.TakeNotices().empty());
  kv.CheckInvariants();
  kv.Commit(producer, 70, Keys(64));
  const std::vector<KvNotice> notices = kv.TakeNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].table, follower.table);
  EXPECT_TRUE(notices[0].complete);
  EXPECT_EQ(kv.ready_tokens(follower.table), 64);
  EXPECT_EQ(kv.first_block(follower.table, 1), (64u - 19) / 16);
  EXPECT_FALSE(kv.producer(follower.table));
  EXPECT_TRUE(kv.Grow(follower.table, 66));
  kv.CheckInvariants();
}

TEST(ReplicaKv, AFollowerKeepsWhatIsReadyWhenTheProducerDies) {
  ReplicaKv kv(Layout({0}), {20});
  const TableId producer = kv.Open(Keys(64), 70).table;
  const TableId follower = kv.Open(Keys(64), 66).table;
  const TableId chained = kv.Open(Keys(96), 100).table;  // follows, and promises what comes after
  const OpenResult last = kv.Open(Keys(96), 97);
  EXPECT_EQ(last.promised_tokens, 96);
  ASSERT_TRUE(kv.Grow(producer, 64));
  kv.Commit(producer, 32, Keys(64));
  kv.Close(producer);
  kv.CheckInvariants();
  EXPECT_EQ(kv.TakeNotices().size(), 3u);
  for (TableId table : {follower, chained, last.table}) {
    EXPECT_EQ(kv.ready_tokens(table), 32);
    EXPECT_FALSE(kv.producer(table));
  }
  kv.Close(chained);
  kv.CheckInvariants();
}

TEST(ReplicaKv, AForkSharesFullBlocksAndCopiesTheTail) {
  ReplicaKv kv(Layout({0}), {4});
  const TableId parent = Compute(kv, 40);
  std::vector<KvCopy> copies;
  const std::optional<TableId> child = kv.Fork(parent, 40, copies);
  ASSERT_TRUE(child);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, kv.blocks(parent, 0)[2]);
  EXPECT_EQ(copies[0].to, kv.blocks(*child, 0)[2]);
  EXPECT_EQ(kv.blocks(parent, 0)[1], kv.blocks(*child, 0)[1]);
  EXPECT_FALSE(kv.Fork(parent, 40, copies));  // no room for another tail
  EXPECT_TRUE(kv.Fork(parent, 32, copies));   // which this one does not need
  kv.CheckInvariants();

  // Both ends of the copy stay until its step has ended, even without their tables.
  kv.Close(parent);
  kv.Close(*child);
  EXPECT_EQ(kv.pool(0).available(), 0u);
  kv.BeginStep({});
  kv.CheckInvariants();
  kv.EndStep();
  EXPECT_EQ(kv.pool(0).available(), 2u);
  kv.CheckInvariants();
}

TEST(ReplicaKv, TrimGivesBackWhatIsNotComputed) {
  ReplicaKv kv(Layout({0}), {4});
  const TableId table = kv.Open({}, 64).table;
  ASSERT_TRUE(kv.Grow(table, 64));
  kv.Commit(table, 10, {});
  kv.Trim(table, 17);
  EXPECT_EQ(kv.pool(0).available(), 2u);
  kv.Trim(table, 10);
  EXPECT_EQ(kv.pool(0).available(), 3u);
  EXPECT_DEATH(kv.Trim(table, 9), "trimmed");
  kv.CheckInvariants();
}

TEST(ReplicaKv, CapacityIsThatOfTheTightestGroup) {
  EXPECT_EQ(ReplicaKv(Layout({0}), {4}).CapacityTokens(), 64);
  EXPECT_EQ(ReplicaKv(Layout({0, 32}), {40, 3}).CapacityTokens(), 640);
  EXPECT_EQ(ReplicaKv(Layout({0, 32}), {40, 2}).CapacityTokens(), 32);
  EXPECT_EQ(ReplicaKv(Layout({0, 33}), {40, 3}).CapacityTokens(), 640);
  EXPECT_EQ(ReplicaKv(Layout({0, 34}), {40, 3}).CapacityTokens(), 48);
}

TEST(ReplicaKv, AClosedTableIsNoTable) {
  ReplicaKv kv(Layout({0}), {4});
  const TableId old = kv.Open({}, 5).table;
  kv.Close(old);
  const TableId other = kv.Open({}, 5).table;
  EXPECT_NE(old, other);
  EXPECT_DEATH(kv.Grow(old, 5), "not an open table");
}

}  // namespace
}  // namespace hexad
