#include "kvcache/core/replica_kv.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kvcache/core/check.h"

namespace hexad {
namespace {

int32_t BlocksOf(int32_t tokens, int32_t block_tokens) {
  // Not (tokens + block_tokens - 1) / block_tokens, which overflows near the end of int32.
  return tokens / block_tokens + (tokens % block_tokens != 0);
}

// A block's key is that of its last unit: a key stands for everything before it too.
std::vector<ContentKey> BlockKeys(std::span<const ContentKey> unit_keys, int32_t first_block,
                                  int32_t num_blocks, int32_t block_tokens) {
  const int32_t units = block_tokens / kUnitTokens;
  std::vector<ContentKey> keys;
  keys.reserve(std::max(0, num_blocks - first_block));
  for (int32_t i = first_block; i < num_blocks; ++i) keys.push_back(unit_keys[(i + 1) * units - 1]);
  return keys;
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

ReplicaKv::Table& ReplicaKv::at(TableId id) {
  return const_cast<Table&>(std::as_const(*this).at(id));
}

const ReplicaKv::Table& ReplicaKv::at(TableId id) const {
  const uint64_t value = static_cast<uint64_t>(id);
  const uint32_t index = static_cast<uint32_t>(value);
  HEXAD_CHECK(index < tables_.size() && tables_[index].open &&
                  tables_[index].incarnation == static_cast<uint32_t>(value >> 32),
              "not an open table");
  return tables_[index];
}

TableId ReplicaKv::NewTable() {
  if (free_tables_.empty()) {
    free_tables_.push_back(static_cast<uint32_t>(tables_.size()));
    tables_.emplace_back();
  }
  const uint32_t index = free_tables_.back();
  free_tables_.pop_back();
  const uint32_t incarnation = tables_[index].incarnation + 1;
  tables_[index] = Table{};
  tables_[index].open = true;
  tables_[index].incarnation = incarnation;
  tables_[index].groups.resize(layout_.groups.size());
  return TableId{static_cast<uint64_t>(incarnation) << 32 | index};
}

// The first block of the group that a query at position `tokens` still sees.
uint32_t ReplicaKv::FirstInWindow(uint32_t group, int32_t tokens) const {
  if (layout_.groups[group].kind != GroupKind::kWindow) return 0;
  const int32_t first_seen = std::max(0, tokens - layout_.groups[group].window_tokens + 1);
  return static_cast<uint32_t>(first_seen / layout_.block_tokens);
}

int32_t ReplicaKv::UsableBlocks(std::span<const ContentKey> block_keys) const {
  std::vector<uint32_t> window_groups;
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    if (layout_.groups[g].kind == GroupKind::kWindow) window_groups.push_back(g);
  }
  std::vector<int32_t> present(window_groups.size());  // blocks in a row up to here
  int32_t usable = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(block_keys.size()); ++i) {
    for (uint32_t g = 0; g < pools_.size(); ++g) {
      if (layout_.groups[g].kind == GroupKind::kWindow) continue;
      if (pools_[g].Find(block_keys[i]) == BlockId::kNone) return usable;
    }
    bool windows_are_whole = true;
    for (size_t w = 0; w < window_groups.size(); ++w) {
      const uint32_t g = window_groups[w];
      present[w] = pools_[g].Find(block_keys[i]) == BlockId::kNone ? 0 : present[w] + 1;
      const int32_t first = FirstInWindow(g, (i + 1) * layout_.block_tokens);
      windows_are_whole = windows_are_whole && present[w] >= i + 1 - first;
    }
    if (windows_are_whole) usable = i + 1;
  }
  return usable;
}

void ReplicaKv::TakePrefix(Table& table, std::span<const ContentKey> block_keys) {
  const int32_t num_blocks = static_cast<int32_t>(block_keys.size());
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    GroupTable& entries = table.groups[g];
    entries.first = FirstInWindow(g, num_blocks * layout_.block_tokens);
    entries.blocks.assign(num_blocks, BlockId::kNone);
    for (int32_t i = entries.first; i < num_blocks; ++i) {
      entries.blocks[i] = pools_[g].Find(block_keys[i]);
      pools_[g].Hold(entries.blocks[i]);
    }
  }
  table.ready = num_blocks;
  table.computed = num_blocks * layout_.block_tokens;
}

OpenResult ReplicaKv::Open(std::span<const ContentKey> unit_keys, int32_t num_tokens) {
  HEXAD_CHECK(num_tokens > 0, "an empty sequence");
  const int32_t block_tokens = layout_.block_tokens;
  const int32_t keyed = static_cast<int32_t>(
      std::min<size_t>(unit_keys.size() / (block_tokens / kUnitTokens), num_tokens / block_tokens));
  // At least one token stays to be computed.
  const int32_t longest = std::min(keyed, (num_tokens - 1) / block_tokens);
  std::vector<ContentKey> keys = BlockKeys(unit_keys, 0, keyed, block_tokens);

  const TableId id = NewTable();
  Table& table = at(id);
  TakePrefix(table, std::span(keys).first(UsableBlocks(std::span(keys).first(longest))));
  table.awaited = table.ready;
  while (table.awaited < longest && promises_.Find(keys[table.awaited])) ++table.awaited;

  table.first_key = table.ready;
  table.keys.assign(keys.begin() + table.ready, keys.end());
  if (table.awaited > table.ready) promises_.AddFollower(table.keys[0], id);
  for (const ContentKey& key : table.keys) promises_.Add(key, id);
  return {id, table.ready * block_tokens, table.awaited * block_tokens};
}

std::optional<TableId> ReplicaKv::Fork(TableId parent, int32_t num_tokens,
                                       std::vector<KvCopy>& copies) {
  HEXAD_CHECK(num_tokens >= 0 && num_tokens <= at(parent).computed, "a fork of what is not there");
  const int32_t full = num_tokens / layout_.block_tokens;
  const bool partial = num_tokens % layout_.block_tokens != 0;
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    if (partial && pools_[g].available() == 0) return std::nullopt;
    if (at(parent).groups[g].first > FirstInWindow(g, num_tokens)) return std::nullopt;
  }
  const TableId id = NewTable();
  Table& table = at(id);
  const Table& source = at(parent);
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const std::vector<BlockId>& from = source.groups[g].blocks;
    GroupTable& entries = table.groups[g];
    entries.first = FirstInWindow(g, num_tokens);
    entries.blocks.assign(full, BlockId::kNone);
    for (int32_t i = entries.first; i < full; ++i) {
      entries.blocks[i] = from[i];
      pools_[g].Hold(from[i]);
    }
    if (!partial) continue;
    const KvCopy copy{g, from[full], pools_[g].Allocate()};
    entries.blocks.push_back(copy.to);
    copies.push_back(copy);
    // Both ends stay until the copy is done, whatever becomes of the two tables.
    for (BlockId end : {copy.from, copy.to}) {
      pools_[g].Hold(end);
      copy_holds_.push_back({g, end});
    }
  }
  table.ready = table.awaited = table.first_key = full;
  table.computed = num_tokens;
  return id;
}

bool ReplicaKv::Grow(TableId id, int32_t num_tokens) {
  Table& table = at(id);
  HEXAD_CHECK(table.awaited == table.ready, "a table grows only once it follows nobody");
  const size_t size = BlocksOf(num_tokens, layout_.block_tokens);
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const size_t has = table.groups[g].blocks.size();
    if (size > has && size - has > pools_[g].available()) return false;
  }
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    std::vector<BlockId>& blocks = table.groups[g].blocks;
    while (blocks.size() < size) blocks.push_back(pools_[g].Allocate());
  }
  return true;
}

// The most tokens with which every group needs no more than its own blocks and `room`.
template <typename Room>
int32_t ReplicaKv::MostTokens(TableId id, Room room) const {
  const Table& table = at(id);
  int64_t most = std::numeric_limits<int32_t>::max();
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const int64_t blocks = static_cast<int64_t>(table.groups[g].blocks.size()) + room(g);
    most = std::min(most, blocks * layout_.block_tokens);
  }
  return static_cast<int32_t>(most);
}

int32_t ReplicaKv::MaxGrow(TableId id) const {
  return MostTokens(id, [this](uint32_t g) -> int64_t { return pools_[g].available(); });
}

int32_t ReplicaKv::MaxGrowLater(TableId id, int32_t scheduled_tokens) const {
  return MostTokens(id, [&](uint32_t g) -> int64_t {
    const int64_t below_window =
        static_cast<int64_t>(FirstInWindow(g, scheduled_tokens)) - at(id).groups[g].first;
    return pools_[g].available() + returning_[g] + std::max<int64_t>(0, below_window);
  });
}

int32_t ReplicaKv::MaxGrowUnbounded(TableId id) const {
  return MostTokens(id, [this](uint32_t g) -> int64_t {
    return layout_.groups[g].kind == GroupKind::kWindow ? std::numeric_limits<int32_t>::max()
                                                        : pools_[g].available();
  });
}

void ReplicaKv::Trim(TableId id, int32_t num_tokens) {
  Table& table = at(id);
  HEXAD_CHECK(num_tokens >= table.computed, "computed tokens cannot be trimmed away");
  const size_t size = BlocksOf(num_tokens, layout_.block_tokens);
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    std::vector<BlockId>& blocks = table.groups[g].blocks;
    while (blocks.size() > size) {
      GiveBack(table, g, blocks.back());
      blocks.pop_back();
    }
  }
}

void ReplicaKv::Commit(TableId id, int32_t computed_tokens, std::span<const ContentKey> unit_keys) {
  const int32_t block_tokens = layout_.block_tokens;
  Table& table = at(id);
  HEXAD_CHECK(computed_tokens >= table.computed, "computed tokens cannot become fewer");
  const int32_t first = table.computed / block_tokens, end = computed_tokens / block_tokens;
  HEXAD_CHECK(unit_keys.size() >= static_cast<size_t>(end) * (block_tokens / kUnitTokens),
              "a full unit has no key");
  for (const GroupTable& entries : table.groups) {
    HEXAD_CHECK(
        entries.blocks.size() >= static_cast<size_t>(BlocksOf(computed_tokens, block_tokens)),
        "tokens were computed outside of the table");
  }
  const std::vector<ContentKey> keys = BlockKeys(unit_keys, first, end, block_tokens);
  for (int32_t i = first; i < end; ++i) {
    const ContentKey& key = keys[i - first];
    for (uint32_t g = 0; g < pools_.size(); ++g) pools_[g].Publish(table.groups[g].blocks[i], key);
    // Followers take the block now: below a window it may be gone a moment later.
    for (TableId follower : promises_.Remove(key)) Follow(follower);
  }
  table.computed = computed_tokens;
  DropBelowWindow(table, computed_tokens);
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

void ReplicaKv::Follow(TableId id) {
  Table& table = at(id);
  while (table.ready < table.awaited) {
    const ContentKey& key = table.keys[table.ready - table.first_key];
    if (promises_.Find(key)) return promises_.AddFollower(key, id);
    for (const BlockPool& pool : pools_) {
      if (pool.Find(key) == BlockId::kNone) return EndFollowing(id, false);
    }
    for (uint32_t g = 0; g < pools_.size(); ++g) {
      const BlockId block = pools_[g].Find(key);
      pools_[g].Hold(block);
      table.groups[g].blocks.push_back(block);
    }
    ++table.ready;
    table.computed = table.ready * layout_.block_tokens;
    DropBelowWindow(table, table.computed);
  }
  EndFollowing(id, true);
}

void ReplicaKv::EndFollowing(TableId id, bool complete) {
  Table& table = at(id);
  table.awaited = table.ready;
  notices_.push_back({id, complete});
}

void ReplicaKv::Close(TableId id) {
  Table& table = at(id);
  if (table.awaited > table.ready) {
    promises_.RemoveFollower(table.keys[table.ready - table.first_key], id);
    table.awaited = table.ready;
  }
  const size_t kept = std::max(0, table.computed / layout_.block_tokens - table.first_key);
  for (size_t i = kept; i < table.keys.size(); ++i) {
    const Promises::Promise* promise = promises_.Find(table.keys[i]);
    if (!promise || promise->producer != id) continue;
    for (TableId follower : promises_.Remove(table.keys[i])) EndFollowing(follower, false);
  }
  std::erase_if(notices_, [id](const KvNotice& notice) { return notice.table == id; });
  // The tail first, so that it is evicted before the prefix it hangs from.
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const GroupTable& entries = table.groups[g];
    for (size_t i = entries.blocks.size(); i > entries.first; --i) {
      GiveBack(table, g, entries.blocks[i - 1]);
    }
  }
  table.open = false;
  table.groups.clear();
  table.keys.clear();
  free_tables_.push_back(static_cast<uint32_t>(static_cast<uint64_t>(id)));
}

void ReplicaKv::GiveBack(const Table& table, uint32_t group, BlockId block) {
  if (table.last_step <= ended_steps_) return pools_[group].Release(block);
  step_releases_[table.last_step - ended_steps_ - 1].push_back({group, block});
  ++returning_[group];
}

void ReplicaKv::BeginStep(std::span<const TableId> tables) {
  ++begun_steps_;
  for (TableId id : tables) at(id).last_step = begun_steps_;
  for (const HeldBlock& held : copy_holds_) ++returning_[held.group];
  step_releases_.push_back(std::exchange(copy_holds_, {}));
}

void ReplicaKv::EndStep() {
  HEXAD_CHECK(ended_steps_ < begun_steps_, "no step is in flight");
  ++ended_steps_;
  const std::vector<HeldBlock> releases = std::move(step_releases_.front());
  step_releases_.pop_front();
  for (const HeldBlock& held : releases) {
    --returning_[held.group];
    pools_[held.group].Release(held.block);
  }
}

int32_t ReplicaKv::ready_tokens(TableId table) const {
  return at(table).ready * layout_.block_tokens;
}

int32_t ReplicaKv::computed_tokens(TableId table) const { return at(table).computed; }

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

uint32_t ReplicaKv::AvailableUnbounded() const {
  uint32_t available = std::numeric_limits<uint32_t>::max();
  for (size_t g = 0; g < pools_.size(); ++g) {
    if (layout_.groups[g].kind == GroupKind::kWindow) continue;
    available = std::min(available, pools_[g].available());
  }
  return available;
}

int32_t ReplicaKv::CapacityTokens() const {
  const int64_t block_tokens = layout_.block_tokens;
  int64_t capacity = std::numeric_limits<int32_t>::max();
  for (size_t g = 0; g < pools_.size(); ++g) {
    const KvGroup& group = layout_.groups[g];
    const int64_t total = pools_[g].total();
    // The window positions that the next token sees, itself included, wherever they lie in blocks.
    const int64_t window_blocks = (group.window_tokens + block_tokens - 2) / block_tokens + 1;
    if (group.kind == GroupKind::kWindow && total >= window_blocks) continue;
    capacity = std::min(capacity, total * block_tokens);
  }
  return static_cast<int32_t>(capacity);
}

}  // namespace hexad
