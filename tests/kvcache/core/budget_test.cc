#include "kvcache/core/budget.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

KvLayout Layout() {  // as a small Gemma 3: 3 full layers, 15 with a window
  KvLayout layout;
  KvGroup full, window;
  full.bytes_per_token = 3 * 1024;
  window.kind = GroupKind::kWindow;
  window.window_tokens = 512;
  window.bytes_per_token = 15 * 1024;
  layout.groups = {full, window};
  return layout;
}

int64_t Used(const KvLayout& layout, const std::vector<uint32_t>& blocks) {
  int64_t bytes = 0;
  for (uint32_t g = 0; g < blocks.size(); ++g) bytes += blocks[g] * BlockBytes(layout, g);
  return bytes;
}

TEST(KvBudget, AWindowGroupGetsWhatItNeedsAndFullOnesTheRest) {
  const KvLayout layout = Layout();
  KvBudget budget;
  budget.bytes = int64_t{4} << 30;
  budget.max_running = 8;
  budget.kept_prefixes = 8;
  const std::vector<uint32_t> blocks = PartitionKvBudget(layout, budget);
  // (512 + 2 * 512) / 16 + 1 for each running one, 512 / 16 + 1 for each kept prefix.
  EXPECT_EQ(blocks[1], 8u * 97 + 8 * 33);
  EXPECT_GT(blocks[0], 80000u);
  EXPECT_LE(Used(layout, blocks), budget.bytes);
  EXPECT_GT(Used(layout, blocks), budget.bytes - BlockBytes(layout, 0));
}

TEST(KvBudget, AShortBudgetIsSpentEvenly) {
  KvBudget budget;
  budget.bytes = 100 * 16 * 18 * 1024;
  budget.max_running = 64;
  EXPECT_EQ(PartitionKvBudget(Layout(), budget), (std::vector<uint32_t>{100, 100}));
  budget.bytes = 16 * 18 * 1024 - 1;
  EXPECT_TRUE(PartitionKvBudget(Layout(), budget).empty());
}

TEST(KvBudget, WithoutFullGroupsAllIsForTheWindows) {
  KvLayout layout = Layout();
  layout.groups.erase(layout.groups.begin());
  KvBudget budget;
  budget.bytes = int64_t{1} << 30;
  EXPECT_EQ(PartitionKvBudget(layout, budget)[0], (1u << 30) / (16 * 15 * 1024));
}

}  // namespace
}  // namespace hexad
