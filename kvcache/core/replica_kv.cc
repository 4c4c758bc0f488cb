#include "kvcache/core/replica_kv.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hexad {
namespace {

// Room for that many blocks more when a table grows.
constexpr size_t kBlocksAhead = 128;

int32_t BlocksOf(int32_t tokens, int32_t block_tokens) {
  // Not (tokens + block_tokens - 1) / block_tokens, which overflows near the end of int32.
  return tokens / block_tokens + (tokens % block_tokens != 0);
}

}  // namespace

ReplicaKv::ReplicaKv(KvLayout layout, const std::vector<uint32_t>& pool_blocks)
    : layout_(std::move(layout)), returning_(pool_blocks.size()) {
  HEXAD_CHECK(!layout_.groups.empty() && pool_blocks.size() == layout_.groups.size(),
              "one pool per KV group");
  HEXAD_CHECK(layout_.block_tokens > 0 && layout_.block_tokens % kUnitTokens == 0,
              "a block is a multiple of a unit");
  for (size_t g = 0; g < layout_.groups.size(); ++g) {
    const KvGroup& group = layout_.groups[g];
    HEXAD_CHECK(group.kind != GroupKind::kState, "state groups have no blocks");
    HEXAD_CHECK(group.kind != GroupKind::kWindow || group.window_tokens > 0, "an empty window");
    pools_.emplace_back(pool_blocks[g]);
  }
}

// The first block of the group that a query at position `tokens` still sees.
uint32_t ReplicaKv::FirstInWindow(uint32_t group, int32_t tokens) const {
  if (layout_.groups[group].kind != GroupKind::kWindow) return 0;
  const int32_t first_seen = std::max(0, tokens - layout_.groups[group].window_tokens + 1);
  return static_cast<uint32_t>(first_seen / layout_.block_tokens);
}

void ReplicaKv::UpdateHead(uint32_t index) {
  Head& head = heads_[index];
  const Table& table = tables_[index];
  const int64_t block_tokens = layout_.block_tokens;
  int64_t change = (head.computed / block_tokens + 1) * block_tokens;
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const GroupTable& entries = table.groups[g];
    if (layout_.groups[g].kind != GroupKind::kWindow) continue;
    const int64_t window = layout_.groups[g].window_tokens;
    change = std::min(change, (entries.first + 1) * block_tokens + window - 1);
  }
  head.capacity = static_cast<uint32_t>(table.groups[0].blocks.size() * block_tokens);
  head.next_change =
      static_cast<int32_t>(std::min<int64_t>(change, std::numeric_limits<int32_t>::max()));
}

bool ReplicaKv::GrowBlocks(TableId id, int32_t num_tokens) {
  const uint32_t index = IndexOf(id);
  Table& table = tables_[index];
  HEXAD_CHECK(table.awaited == table.ready, "a table grows only once it follows nobody");
  const size_t size = BlocksOf(num_tokens, layout_.block_tokens);
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const size_t has = table.groups[g].blocks.size();
    if (size <= has || size - has <= pools_[g].available()) continue;
    if (!ReleaseAllRuns() || size - has > pools_[g].available()) return false;
  }
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    std::vector<BlockId>& blocks = table.groups[g].blocks;
    // Not twice as much: a long table would be copied in the middle of decoding.
    if (size > blocks.capacity()) blocks.reserve(size + size / 8 + kBlocksAhead);
    while (blocks.size() < size) blocks.push_back(pools_[g].Allocate());
  }
  UpdateHead(index);
  return true;
}

void ReplicaKv::Trim(TableId id, int32_t num_tokens) {
  const uint32_t index = IndexOf(id);
  Table& table = tables_[index];
  HEXAD_CHECK(num_tokens >= heads_[index].computed, "computed tokens cannot be trimmed away");
  const size_t size = BlocksOf(num_tokens, layout_.block_tokens);
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    std::vector<BlockId>& blocks = table.groups[g].blocks;
    while (blocks.size() > size) {
      GiveBack(heads_[index], g, blocks.back());
      blocks.pop_back();
    }
  }
  UpdateHead(index);
}

void ReplicaKv::CommitBlocks(TableId id, int32_t computed_tokens,
                             std::span<const ContentKey> unit_keys) {
  const int32_t block_tokens = layout_.block_tokens;
  const int32_t units = block_tokens / kUnitTokens;
  const uint32_t index = IndexOf(id);
  const int32_t computed = heads_[index].computed;
  HEXAD_CHECK(computed_tokens >= computed, "computed tokens cannot become fewer");
  const int32_t first = computed / block_tokens, end = computed_tokens / block_tokens;
  HEXAD_CHECK(unit_keys.size() >= static_cast<size_t>(end) * units, "a full unit has no key");
  HEXAD_CHECK(static_cast<uint32_t>(computed_tokens) <= heads_[index].capacity,
              "tokens were computed outside of the table");
  Table& table = tables_[index];
  for (int32_t i = first; i < end; ++i) {
    const ContentKey& key = BlockKey(unit_keys, i);
    for (uint32_t g = 0; g < pools_.size(); ++g) pools_[g].Publish(table.groups[g].blocks[i], key);
    // Followers take the block now: below a window it may be gone a moment later.
    for (TableId follower : promises_.Remove(key)) Follow(follower);
  }
  heads_[index].computed = computed_tokens;
  DropBelowWindow(table, computed_tokens);
  UpdateHead(index);
}

// Steps in flight begin at or after the computed tokens, so nothing in flight reads these.
void ReplicaKv::DropBelowWindow(Table& table, int32_t tokens) {
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    GroupTable& entries = table.groups[g];
    const uint32_t first =
        std::min<uint32_t>(FirstInWindow(g, tokens), static_cast<uint32_t>(entries.blocks.size()));
    for (; entries.first < first; ++entries.first) {
      pools_[g].Release(std::exchange(entries.blocks[entries.first], BlockId::kNone));
    }
  }
}

void ReplicaKv::Close(TableId id) {
  const uint32_t index = IndexOf(id);
  Table& table = tables_[index];
  Head& head = heads_[index];
  if (table.awaited > table.ready) {
    promises_.RemoveFollower(table.keys[table.ready - table.first_key], id);
    table.awaited = table.ready;
  }
  const size_t kept = std::max(0, head.computed / layout_.block_tokens - table.first_key);
  for (size_t i = kept; i < table.keys.size(); ++i) {
    const Promises::Promise* promise = promises_.Find(table.keys[i]);
    if (!promise || promise->producer != id) continue;
    for (TableId follower : promises_.Remove(table.keys[i])) EndFollowing(follower, false);
  }
  std::erase_if(notices_, [id](const KvNotice& notice) { return notice.table == id; });
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    GiveBack(head, {g, table.groups[g].first, std::move(table.groups[g].blocks)});
  }
  head.open = false;
  table.groups.clear();
  table.keys.clear();
  free_tables_.push_back(index);
  ReleaseSomeRuns();
}

int32_t ReplicaKv::ready_tokens(TableId table) const {
  return at(table).ready * layout_.block_tokens;
}

std::span<const BlockId> ReplicaKv::blocks(TableId table, uint32_t group) const {
  return at(table).groups[group].blocks;
}

uint32_t ReplicaKv::first_block(TableId table, uint32_t group) const {
  return at(table).groups[group].first;
}

std::optional<TableId> ReplicaKv::producer(TableId id) const {
  const Table& table = at(id);
  if (table.awaited == table.ready) return std::nullopt;
  return promises_.Find(table.keys[table.ready - table.first_key])->producer;
}

std::vector<KvNotice> ReplicaKv::TakeNotices() { return std::exchange(notices_, {}); }

}  // namespace hexad
