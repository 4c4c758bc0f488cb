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
// What a step does to a sequence that stays within its block is a look at one small record. The
// blocks of a sequence that ended go back a part with every step that ends, all of them as soon as
// one is missing, so that the end of a long one is not the pause of the others.
//
// Synchronous, not thread-safe: owned by the replica's loop.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "kvcache/core/block_pool.h"
#include "kvcache/core/check.h"
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

// Per group the blocks of a prefix, as far as they were there; empty for window groups.
using PrefixGuess = std::vector<std::vector<BlockId>>;

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
  // guess: what Probe gave for the same keys some time ago, or nothing; it saves the look-ups of
  // what is still where it was.
  OpenResult Open(std::span<const ContentKey> unit_keys, int32_t num_tokens,
                  const PrefixGuess& guess = {});
  // Where the blocks of the prefix are now. Takes hold of nothing.
  PrefixGuess Probe(std::span<const ContentKey> unit_keys, int32_t num_tokens) const;

  // A second table with the first num_tokens of `parent`: full blocks are shared, a partial one is
  // copied. The copies belong into the next step that begins. nullopt: no room, or a window group
  // of the parent has moved on.
  // REQUIRES: num_tokens <= what was committed as computed.
  std::optional<TableId> Fork(TableId parent, int32_t num_tokens, std::vector<KvCopy>& copies);

  // Room for num_tokens in every group, or no change at all and false.
  bool Grow(TableId table, int32_t num_tokens) {
    return static_cast<uint32_t>(num_tokens) <= heads_[IndexOf(table)].capacity ||
           GrowBlocks(table, num_tokens);
  }
  // The largest number up to wanted_tokens with which Grow would succeed now.
  int32_t MaxGrow(TableId table, int32_t wanted_tokens);
  // Whether Grow would succeed once the steps in flight have ended and this table's first
  // scheduled_tokens are committed, if nobody takes a block before and nobody else holds the
  // returning ones.
  bool CanGrowLater(TableId table, int32_t scheduled_tokens, int32_t num_tokens) const;
  // Whether Grow would succeed now in the groups that keep everything: the blocks of window groups
  // come back as the sequence goes on.
  bool CanGrowUnbounded(TableId table, int64_t num_tokens);

  // Gives back the blocks wholly past num_tokens. REQUIRES: num_tokens >= computed_tokens(table).
  void Trim(TableId table, int32_t num_tokens);

  // The first computed_tokens are computed and will not change: full blocks become shareable under
  // their keys, followers take them, and window groups give back what lies wholly below the window.
  // Where another block has the same content already, that one stays the shared one.
  // unit_keys: of the sequence so far, at least of the full units of computed_tokens.
  void Commit(TableId table, int32_t computed_tokens, std::span<const ContentKey> unit_keys) {
    Head& head = heads_[IndexOf(table)];
    const bool nothing_to_do = computed_tokens < head.next_change &&
                               computed_tokens >= head.computed &&
                               static_cast<uint32_t>(computed_tokens) <= head.capacity;
    if (!nothing_to_do) return CommitBlocks(table, computed_tokens, unit_keys);
    head.computed = computed_tokens;
  }
  // A hint that the table is about to commit a block under this key.
  void PrefetchCommit(const ContentKey& block_key) const {
    for (const BlockPool& pool : pools_) pool.Prefetch(block_key);
  }

  // Ends a table. What it promised and did not commit is lost to its followers.
  void Close(TableId table);

  int32_t ready_tokens(TableId table) const;  // of the prefix it opened with, growing as it follows
  int32_t computed_tokens(TableId table) const {  // ready or committed
    return heads_[IndexOf(table)].computed;
  }
  // For which it has blocks: as many in every group.
  uint32_t capacity_tokens(TableId table) const { return heads_[IndexOf(table)].capacity; }
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
  // Blocks of ended tables that are still to return, if nobody else holds them.
  uint32_t returning_blocks(uint32_t group) const { return returning_[group]; }
  // Whether a new sequence could take so many blocks now in every group that keeps everything.
  bool HasRoomUnbounded(int64_t blocks);
  // The longest sequence that fits when it is alone.
  int32_t CapacityTokens() const;

  // Aborts when tables, pools, promises and steps in flight disagree. O(everything).
  void CheckInvariants() const;

 private:
  struct GroupTable {
    std::vector<BlockId> blocks;
    uint32_t first = 0;  // entries below were given back, or never held
  };
  // What every step looks at, apart from the rest.
  struct Head {
    uint64_t last_step = 0;  // the latest begun step with this table
    uint32_t incarnation = 0;
    uint32_t capacity = 0;  // tokens for which every group has blocks
    int32_t computed = 0;   // tokens
    // With fewer computed tokens no block becomes full and none leaves a window.
    int32_t next_change = 0;
    bool open = false;
  };
  struct Table {
    int32_t ready = 0;    // blocks of the opening prefix
    int32_t awaited = 0;  // blocks: follows promises from `ready` up to here
    std::vector<GroupTable> groups;
    int32_t first_key = 0;         // block index of keys[0]
    std::vector<ContentKey> keys;  // block keys awaited or promised
  };
  struct HeldBlock {
    uint32_t group = 0;
    BlockId block{};
  };
  struct HeldRun {  // of an ended table: entries [first, blocks.size()), to go from the end
    uint32_t group = 0;
    uint32_t first = 0;
    std::vector<BlockId> blocks;
  };
  struct StepReleases {
    std::vector<HeldBlock> blocks;
    std::vector<HeldRun> runs;
  };
  struct BlockKeys;  // see replica_kv_open.cc

  uint32_t IndexOf(TableId id) const {
    const uint64_t value = static_cast<uint64_t>(id);
    const uint32_t index = static_cast<uint32_t>(value);
    HEXAD_CHECK(index < heads_.size() && heads_[index].open &&
                    heads_[index].incarnation == static_cast<uint32_t>(value >> 32),
                "not an open table");
    return index;
  }
  Table& at(TableId id) { return tables_[IndexOf(id)]; }
  const Table& at(TableId id) const { return tables_[IndexOf(id)]; }
  const ContentKey& BlockKey(std::span<const ContentKey> unit_keys, int32_t block) const;
  TableId NewTable();
  void UpdateHead(uint32_t index);  // after its blocks or its computed tokens changed
  bool InFlight(const Head& head) const;
  bool GrowBlocks(TableId table, int32_t num_tokens);
  void CommitBlocks(TableId table, int32_t computed_tokens, std::span<const ContentKey> unit_keys);
  int32_t FindPrefix(Table& table, const BlockKeys& keys, int32_t longest,
                     const PrefixGuess& guess) const;
  int32_t EndOfWholeWindows(const BlockKeys& keys, int32_t most) const;
  uint32_t FirstInWindow(uint32_t group, int32_t tokens) const;
  void TakePrefix(Table& table, const BlockKeys& keys, int32_t num_blocks);
  template <typename Room>
  int64_t MostTokens(TableId table, Room room) const;
  void DropBelowWindow(Table& table, int32_t tokens);
  void Follow(TableId id);  // as far as the promises are kept; waits at the next open one
  void EndFollowing(TableId id, bool complete);
  void GiveBack(const Head& head, uint32_t group, BlockId block);
  void GiveBack(const Head& head, HeldRun run);
  void ReleaseRuns(int64_t most_blocks);
  void ReleaseSomeRuns();
  bool ReleaseAllRuns();  // false: there was none

  KvLayout layout_;
  std::vector<BlockPool> pools_;
  std::vector<Head> heads_;  // by table index, as the next
  std::vector<Table> tables_;
  std::vector<uint32_t> free_tables_;
  Promises promises_;
  std::vector<KvNotice> notices_;
  uint64_t begun_steps_ = 0;
  uint64_t ended_steps_ = 0;
  std::deque<StepReleases> step_releases_;  // of the steps in flight, oldest first
  std::deque<HeldRun> runs_;                // of ended tables that no step in flight uses
  int64_t run_blocks_ = 0;                  // in runs_
  std::vector<HeldBlock> copy_holds_;       // released with the next step that begins
  std::vector<uint32_t> returning_;
};

}  // namespace hexad
