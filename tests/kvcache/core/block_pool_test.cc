#include "kvcache/core/block_pool.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

ContentKey Key(uint64_t value) { return {value, value}; }

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(3);
  const BlockId a = pool.Allocate(), b = pool.Allocate(), c = pool.Allocate();
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
  pool.Release(b);
  EXPECT_EQ(pool.Allocate(), b);
  pool.CheckInvariants();
}

TEST(BlockPool, KeepsKeyedBlocksUntilTheirRoomIsNeeded) {
  BlockPool pool(2);
  const BlockId a = pool.Allocate(), b = pool.Allocate();
  EXPECT_TRUE(pool.Publish(a, Key(1)));
  pool.Release(a);
  pool.Release(b);
  EXPECT_EQ(pool.available(), 2u);
  EXPECT_EQ(pool.cached(), 1u);
  EXPECT_EQ(pool.Allocate(), b);  // the free one first
  EXPECT_EQ(pool.Find(Key(1)), a);
  EXPECT_EQ(pool.Allocate(), a);
  EXPECT_EQ(pool.Find(Key(1)), BlockId::kNone);
  EXPECT_EQ(pool.evictions(), 1u);
  pool.CheckInvariants();
}

TEST(BlockPool, TheLeastRecentlyReleasedLeavesFirst) {
  BlockPool pool(3);
  std::vector<BlockId> blocks;
  for (uint64_t i = 0; i < 3; ++i) {
    blocks.push_back(pool.Allocate());
    pool.Publish(blocks[i], Key(i));
  }
  for (int i : {2, 0, 1}) pool.Release(blocks[i]);
  pool.Hold(blocks[2]);  // used again, so now the most recent
  pool.Release(blocks[2]);
  pool.CheckInvariants();
  EXPECT_EQ(pool.Allocate(), blocks[0]);
  EXPECT_EQ(pool.Allocate(), blocks[1]);
  EXPECT_EQ(pool.Allocate(), blocks[2]);
}

TEST(BlockPool, KeepsOneOfTwoBlocksWithTheSameContent) {
  BlockPool pool(2);
  const BlockId a = pool.Allocate(), b = pool.Allocate();
  EXPECT_TRUE(pool.Publish(a, Key(1)));
  EXPECT_TRUE(pool.Publish(a, Key(1)));
  EXPECT_FALSE(pool.Publish(b, Key(1)));
  pool.Release(b);
  EXPECT_EQ(pool.cached(), 0u);
  EXPECT_EQ(pool.Find(Key(1)), a);
  pool.CheckInvariants();
}

TEST(BlockPool, ABlockStaysWhileAnybodyHoldsIt) {
  BlockPool pool(1);
  const BlockId a = pool.Allocate();
  pool.Hold(a);
  pool.Release(a);
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_EQ(pool.holders(a), 1u);
  pool.Release(a);
  EXPECT_EQ(pool.available(), 1u);
}

TEST(BlockPoolDeathTest, ABrokenCallerIsNoticed) {
  BlockPool pool(1);
  const BlockId a = pool.Allocate();
  EXPECT_DEATH(pool.Allocate(), "empty pool");
  pool.Release(a);
  EXPECT_DEATH(pool.Release(a), "released twice");
  EXPECT_DEATH(pool.Hold(a), "free block");
  EXPECT_DEATH(pool.Hold(BlockId::kNone), "no such block");
}

}  // namespace
}  // namespace hexad
