#pragma once

// The KV of one replica: block tables of the running sequences over the groups' pools, prefix
// sharing by content key, and the promises that let a sequence wait for a prefix that another is
// just computing.
//
// Rules that hold at all times:
// - A block returns to its pool when the last step and the last copy that use it are complete, at
//   once if none is in flight; never at cancel. Closing a table while a step with it is in flight
//   keeps its blocks until that step ends.
// - A block that has a key or a second holder is never written again.
// - Tables of different roots share nothing, because their keys differ.
//
// Synchronous, not thread-safe: owned by the replica's loop.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "kvcache/core/block_pool.h"
#include "kvcache/core/groups.h"
#include "kvcache/core/promises.h"
#include "kvcache/core/types.h"

namespace hexad {

struct OpenResult {
  TableId table{};
  int32_t ready_tokens = 0;  // the KV of this prefix is in the table
  // Another table is computing up to here (== ready_tokens: nothing to wait for). The blocks join
  // this table as they are committed; TakeNotices() tells when all have, or never will.
  int32_t promised_tokens = 0;
};

// A followed promise came to its end: ready_tokens() is now all of it, or what there was when the
// table that computed it was closed.
struct KvNotice {
  TableId table{};
  bool complete = false;
};

struct KvCopy {
  uint32_t group = 0;
  BlockId from{};
  BlockId to{};
};

class ReplicaKv final {
 public:
  // pool_blocks: blocks per group, in the order of layout.groups. Groups are full, latent or window
  // ones; state groups have no blocks.
  ReplicaKv(KvLayout layout, const std::vector<uint32_t>& pool_blocks);

  // --- Tables

  // A table that starts with the longest usable prefix: a multiple of block_tokens, all of whose
  // blocks are present in every full group and those of the last window - 1 tokens in every window
  // group. At least one of the num_tokens stays to be computed. What follows the prefix and is not
  // promised yet is promised by this table. unit_keys: of the full units of the num_tokens.
  OpenResult Open(std::span<const ContentKey> unit_keys, int32_t num_tokens);

  // A second table with the first num_tokens of `parent`: full blocks are shared, a partial one is
  // copied. The copies belong into the next step that begins. nullopt: no room, or a window group
  // of the parent has moved on.
  // REQUIRES: num_tokens <= what was committed as computed.
  std::optional<TableId> Fork(TableId parent, int32_t num_tokens, std::vector<KvCopy>& copies);

  // Room for num_tokens in every group, or no change at all and false.
  bool Grow(TableId table, int32_t num_tokens);
  // The largest num_tokens with which Grow would succeed now.
  int32_t MaxGrow(TableId table) const;
  // The same once the steps in flight have ended and this table's first scheduled_tokens are
  // committed, if nobody takes a block before and nobody else holds the returning ones.
  int32_t MaxGrowLater(TableId table, int32_t scheduled_tokens) const;
  // The same for the groups that keep everything, without the window groups, whose blocks come back
  // as the sequence goes on.
  int32_t MaxGrowUnbounded(TableId table) const;

  // Gives back the blocks wholly past num_tokens. REQUIRES: num_tokens >= computed_tokens(table).
  void Trim(TableId table, int32_t num_tokens);

  // The first computed_tokens are computed and will not change: full blocks become shareable under
  // their keys, followers take them, and window groups give back what lies wholly below the window.
  // Where another block has the same content already, that one stays the shared one.
  // unit_keys: of the sequence so far, at least of the full units of computed_tokens.
  void Commit(TableId table, int32_t computed_tokens, std::span<const ContentKey> unit_keys);

  // Ends a table. What it promised and did not commit is lost to its followers.
  void Close(TableId table);

  int32_t ready_tokens(TableId table) const;  // of the prefix it opened with, growing as it follows
  int32_t computed_tokens(TableId table) const;  // ready or committed
  // Entry i holds positions [i * block_tokens, (i+1) * block_tokens); entries below first_block are
  // kNone. Entries never change but for becoming kNone.
  std::span<const BlockId> blocks(TableId table, uint32_t group) const;
  uint32_t first_block(TableId table, uint32_t group) const;

  // Who computes the block that this table waits for; nullopt when it waits for none.
  std::optional<TableId> producer(TableId table) const;
  std::vector<KvNotice> TakeNotices();

  // --- Steps in flight, begun and ended in the same order

  // A step that reads and writes the tables is about to be submitted.
  void BeginStep(std::span<const TableId> tables);
  // The oldest step in flight is complete, with or without success.
  void EndStep();

  // --- Room

  const KvLayout& layout() const { return layout_; }
  const BlockPool& pool(uint32_t group) const { return pools_[group]; }
  // Blocks that return when the steps in flight end, if nobody else holds them.
  uint32_t returning_blocks(uint32_t group) const { return returning_[group]; }
  // Blocks that a new sequence could take now in every group that keeps everything.
  uint32_t AvailableUnbounded() const;
  // The longest sequence that fits when it is alone.
  int32_t CapacityTokens() const;

  // Aborts when tables, pools, promises and steps in flight disagree. O(everything).
  void CheckInvariants() const;

 private:
  struct GroupTable {
    std::vector<BlockId> blocks;
    uint32_t first = 0;  // entries below were given back, or never held
  };
  struct Table {
    bool open = false;
    uint32_t incarnation = 0;
    uint64_t last_step = 0;  // the latest begun step with this table
    int32_t ready = 0;       // blocks of the opening prefix
    int32_t awaited = 0;     // blocks: follows promises from `ready` up to here
    int32_t computed = 0;    // tokens
    std::vector<GroupTable> groups;
    int32_t first_key = 0;         // block index of keys[0]
    std::vector<ContentKey> keys;  // block keys awaited or promised
  };
  struct HeldBlock {
    uint32_t group = 0;
    BlockId block{};
  };

  Table& at(TableId table);
  const Table& at(TableId table) const;
  TableId NewTable();
  int32_t UsableBlocks(std::span<const ContentKey> block_keys) const;
  uint32_t FirstInWindow(uint32_t group, int32_t tokens) const;
  void TakePrefix(Table& table, std::span<const ContentKey> block_keys);
  template <typename Room>
  int32_t MostTokens(TableId table, Room room) const;
  void DropBelowWindow(Table& table, int32_t tokens);
  void Follow(TableId id);  // as far as the promises are kept; waits at the next open one
  void EndFollowing(TableId id, bool complete);
  void GiveBack(const Table& table, uint32_t group, BlockId block);

  KvLayout layout_;
  std::vector<BlockPool> pools_;
  std::vector<Table> tables_;
  std::vector<uint32_t> free_tables_;
  Promises promises_;
  std::vector<KvNotice> notices_;
  uint64_t begun_steps_ = 0;
  uint64_t ended_steps_ = 0;
  std::deque<std::vector<HeldBlock>> step_releases_;  // of the steps in flight, oldest first
  std::vector<HeldBlock> copy_holds_;                 // released with the next step that begins
  std::vector<uint32_t> returning_;
};

}  // namespace hexad
