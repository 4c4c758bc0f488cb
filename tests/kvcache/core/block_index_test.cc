#include "kvcache/core/block_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hexad {
namespace {

TEST(BlockIndex, AgreesWithAMap) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    constexpr uint32_t kBlocks = 50;
    std::mt19937_64 random(seed);
    BlockIndex index(kBlocks);
    std::vector<ContentKey> keys(kBlocks);
    std::map<ContentKey, uint32_t> expected;
    std::vector<uint32_t> unused;
    for (uint32_t block = 0; block < kBlocks; ++block) unused.push_back(block);
    for (int i = 0; i < 3000; ++i) {
      // Few different keys, all of them neighbours: long runs that wrap around.
      const ContentKey key{random() % 3, random() % 40};
      const auto found = expected.find(key);
      EXPECT_EQ(index.Find(key, keys),
                found == expected.end() ? BlockId::kNone : BlockId{found->second});
      if (random() % 2 == 0 && !unused.empty()) {
        const uint32_t block = unused.back();
        const bool inserted = index.Insert(key, block, keys);
        EXPECT_EQ(inserted, found == expected.end());
        if (!inserted) continue;
        keys[block] = key;
        expected[key] = block;
        unused.pop_back();
      } else if (found != expected.end()) {
        index.Erase(key, found->second);
        unused.push_back(found->second);
        expected.erase(found);
      }
      EXPECT_EQ(index.size(), expected.size());
    }
    for (const auto& [key, block] : expected) EXPECT_EQ(index.Find(key, keys), BlockId{block});
  }
}

}  // namespace
}  // namespace hexad
