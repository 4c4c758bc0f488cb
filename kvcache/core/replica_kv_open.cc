// How a table begins: the longest usable prefix, and what it waits for or promises.

#include <algorithm>
#include <utility>

#include "kvcache/core/replica_kv.h"

namespace hexad {
namespace {

// Look-ups and holds of a long prefix are cache misses: so many are under way at a time.
constexpr int32_t kAhead = 16;

}  // namespace

// A block's key is that of its last unit: a key stands for everything before it too.
struct ReplicaKv::BlockKeys {
  std::span<const ContentKey> unit_keys;
  int32_t units = 1;  // of a block

  const ContentKey& operator[](int32_t i) const { return unit_keys[(i + 1) * units - 1]; }
};

const ContentKey& ReplicaKv::BlockKey(std::span<const ContentKey> unit_keys, int32_t block) const {
  return BlockKeys{unit_keys, layout_.block_tokens / kUnitTokens}[block];
}

TableId ReplicaKv::NewTable() {
  if (free_tables_.empty()) {
    free_tables_.push_back(static_cast<uint32_t>(tables_.size()));
    tables_.emplace_back();
    heads_.emplace_back();
  }
  const uint32_t index = free_tables_.back();
  free_tables_.pop_back();
  const uint32_t incarnation = heads_[index].incarnation + 1;
  heads_[index] = Head{};
  heads_[index].open = true;
  heads_[index].incarnation = incarnation;
  tables_[index] = Table{};
  tables_[index].groups.resize(layout_.groups.size());
  return TableId{static_cast<uint64_t>(incarnation) << 32 | index};
}

// Puts the blocks that the full groups have, as far as all have them, into the table, without
// holding them, and returns how many of them are usable with the window groups.
int32_t ReplicaKv::FindPrefix(Table& table, const BlockKeys& keys, int32_t longest,
                              const PrefixGuess& guess) const {
  int32_t present = longest;
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    if (layout_.groups[g].kind == GroupKind::kWindow) continue;
    const BlockPool& pool = pools_[g];
    std::vector<BlockId>& blocks = table.groups[g].blocks;
    blocks.reserve(static_cast<size_t>(present));
    const int32_t guessed =
        g < guess.size() ? std::min(present, static_cast<int32_t>(guess[g].size())) : 0;
    int32_t i = 0;
    for (; i < guessed && pool.HasKey(guess[g][i], keys[i]); ++i) blocks.push_back(guess[g][i]);
    for (int32_t ahead = i; ahead < std::min(present, i + kAhead); ++ahead) {
      pool.Prefetch(keys[ahead]);
    }
    for (; i < present; ++i) {
      if (i + kAhead < present) pool.Prefetch(keys[i + kAhead]);
      const BlockId block = pool.Find(keys[i]);
      if (block == BlockId::kNone) present = i;
      if (block != BlockId::kNone) blocks.push_back(block);
    }
  }
  return EndOfWholeWindows(keys, present);
}

// The most blocks, up to `most`, at whose end every window group has its window.
int32_t ReplicaKv::EndOfWholeWindows(const BlockKeys& keys, int32_t most) const {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t g = 0; g < pools_.size(); ++g) {
      if (layout_.groups[g].kind != GroupKind::kWindow) continue;
      const int32_t first = FirstInWindow(g, most * layout_.block_tokens);
      int32_t i = most - 1;
      while (i >= first && pools_[g].Find(keys[i]) != BlockId::kNone) --i;
      if (i < first) continue;
      // A hole: whoever ends past it lacks it, until it is below the window.
      most = i;
      again = true;
    }
  }
  return most;
}

PrefixGuess ReplicaKv::Probe(std::span<const ContentKey> unit_keys, int32_t num_tokens) const {
  const int32_t units = layout_.block_tokens / kUnitTokens;
  const int32_t longest = static_cast<int32_t>(std::min<size_t>(
      unit_keys.size() / units, std::max(0, num_tokens - 1) / layout_.block_tokens));
  Table table;
  table.groups.resize(pools_.size());
  FindPrefix(table, {unit_keys, units}, longest, {});
  PrefixGuess guess;
  for (GroupTable& group : table.groups) guess.push_back(std::move(group.blocks));
  return guess;
}

void ReplicaKv::TakePrefix(Table& table, const BlockKeys& keys, int32_t num_blocks) {
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    GroupTable& entries = table.groups[g];
    BlockPool& pool = pools_[g];
    entries.first = FirstInWindow(g, num_blocks * layout_.block_tokens);
    entries.blocks.resize(static_cast<size_t>(num_blocks), BlockId::kNone);
    if (layout_.groups[g].kind == GroupKind::kWindow) {
      for (int32_t i = entries.first; i < num_blocks; ++i) entries.blocks[i] = pool.Find(keys[i]);
    }
    for (int32_t i = entries.first; i < num_blocks; ++i) {
      if (i + kAhead < num_blocks) pool.Prefetch(entries.blocks[i + kAhead]);
      pool.Hold(entries.blocks[i]);
    }
  }
  table.ready = num_blocks;
}

OpenResult ReplicaKv::Open(std::span<const ContentKey> unit_keys, int32_t num_tokens,
                           const PrefixGuess& guess) {
  HEXAD_CHECK(num_tokens > 0, "an empty sequence");
  const int32_t block_tokens = layout_.block_tokens;
  const int32_t units = block_tokens / kUnitTokens;
  const int32_t keyed =
      static_cast<int32_t>(std::min<size_t>(unit_keys.size() / units, num_tokens / block_tokens));
  // At least one token stays to be computed.
  const int32_t longest = std::min(keyed, (num_tokens - 1) / block_tokens);
  const BlockKeys keys{unit_keys, units};

  const TableId id = NewTable();
  Table& table = at(id);
  TakePrefix(table, keys, FindPrefix(table, keys, longest, guess));
  heads_[IndexOf(id)].computed = table.ready * block_tokens;
  UpdateHead(IndexOf(id));
  table.awaited = table.ready;
  while (table.awaited < longest && promises_.Find(keys[table.awaited])) ++table.awaited;

  table.first_key = table.ready;
  table.keys.reserve(static_cast<size_t>(keyed - table.ready));
  for (int32_t i = table.ready; i < keyed; ++i) table.keys.push_back(keys[i]);
  if (table.awaited > table.ready) promises_.AddFollower(table.keys[0], id);
  for (const ContentKey& key : table.keys) promises_.Add(key, id);
  return {id, table.ready * block_tokens, table.awaited * block_tokens};
}

std::optional<TableId> ReplicaKv::Fork(TableId parent, int32_t num_tokens,
                                       std::vector<KvCopy>& copies) {
  HEXAD_CHECK(num_tokens >= 0 && num_tokens <= computed_tokens(parent),
              "a fork of what is not there");
  const int32_t full = num_tokens / layout_.block_tokens;
  const bool partial = num_tokens % layout_.block_tokens != 0;
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    if (partial && pools_[g].available() == 0 && !ReleaseAllRuns()) return std::nullopt;
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
  heads_[IndexOf(id)].computed = num_tokens;
  UpdateHead(IndexOf(id));
  return id;
}

void ReplicaKv::Follow(TableId id) {
  const uint32_t index = IndexOf(id);
  Table& table = tables_[index];
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
    heads_[index].computed = table.ready * layout_.block_tokens;
    DropBelowWindow(table, heads_[index].computed);
    UpdateHead(index);
  }
  EndFollowing(id, true);
}

void ReplicaKv::EndFollowing(TableId id, bool complete) {
  Table& table = at(id);
  table.awaited = table.ready;
  notices_.push_back({id, complete});
}

}  // namespace hexad
