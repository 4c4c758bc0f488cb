#include "kvcache/core/budget.h"

#include <algorithm>
#include <limits>

#include "kvcache/core/check.h"

namespace hexad {
namespace {

// Ids are 32 bits and the highest is kNone.
constexpr int64_t kMaxBlocks = std::numeric_limits<uint32_t>::max() - 1;

// Blocks with which every running sequence and every kept prefix has its window.
int64_t WindowNeed(const KvLayout& layout, const KvGroup& group, const KvBudget& budget) {
  const int64_t block_tokens = layout.block_tokens;
  const int64_t in_flight =
      static_cast<int64_t>(budget.max_chunk_tokens) * std::max(1, budget.max_steps_in_flight);
  // One block more on each: neither end of a window lies on a block boundary.
  const int64_t running = (group.window_tokens + in_flight + block_tokens - 1) / block_tokens + 1;
  const int64_t kept = (group.window_tokens + block_tokens - 1) / block_tokens + 1;
  return running * budget.max_running + kept * budget.kept_prefixes;
}

}  // namespace

int64_t BlockBytes(const KvLayout& layout, uint32_t group) {
  HEXAD_CHECK(layout.groups[group].bytes_per_token > 0, "a KV group without bytes");
  return layout.groups[group].bytes_per_token * layout.block_tokens;
}

std::vector<uint32_t> PartitionKvBudget(const KvLayout& layout, const KvBudget& budget) {
  int64_t bytes_of_all = 0, bytes_of_unbounded = 0;
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    bytes_of_all += BlockBytes(layout, g);
    if (layout.groups[g].kind != GroupKind::kWindow) bytes_of_unbounded += BlockBytes(layout, g);
  }
  if (bytes_of_all == 0 || budget.bytes < bytes_of_all) return {};
  const int64_t equal = std::min(budget.bytes / bytes_of_all, kMaxBlocks);

  std::vector<uint32_t> blocks(layout.groups.size(), static_cast<uint32_t>(equal));
  if (bytes_of_unbounded == 0) return blocks;
  int64_t bytes_left = budget.bytes;
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    const KvGroup& group = layout.groups[g];
    if (group.kind != GroupKind::kWindow) continue;
    blocks[g] = static_cast<uint32_t>(std::min(equal, WindowNeed(layout, group, budget)));
    bytes_left -= blocks[g] * BlockBytes(layout, g);
  }
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    if (layout.groups[g].kind == GroupKind::kWindow) continue;
    blocks[g] = static_cast<uint32_t>(std::min(bytes_left / bytes_of_unbounded, kMaxBlocks));
  }
  return blocks;
}

}  // namespace hexad
