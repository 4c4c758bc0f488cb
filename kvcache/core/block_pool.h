#pragma once

// The blocks of one KV group: a free list, reference counts, and the blocks that are kept after
// their last holder because their content has a key.
//
// A block is free (no holder, no key), held (holders > 0, with or without a key) or cached (no
// holder, a key). Free blocks are handed out first, then cached ones, the least recently released
// first. Who releases a sequence releases its tail first, so that leaves leave before the prefixes
// they hang from. Not thread-safe; every operation is O(1).

#include <cstdint>
#include <vector>

#include "kvcache/core/block_index.h"
#include "kvcache/core/types.h"

namespace hexad {

class BlockPool final {
 public:
  explicit BlockPool(uint32_t num_blocks);

  uint32_t total() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t available() const { return static_cast<uint32_t>(free_.size()) + num_cached_; }
  uint32_t cached() const { return num_cached_; }
  uint64_t evictions() const { return evictions_; }

  // A block with one holder and no key. A cached block that is taken loses its key.
  // REQUIRES: available() > 0.
  BlockId Allocate();

  // One holder more, or less. The block must be held, or, for Hold, may be cached.
  void Hold(BlockId block);
  void Release(BlockId block);

  // Makes a held block findable under `key`. False when another block already is: that one is
  // kept, and this one stays private to its holders. Publishing a block twice under its key is
  // fine; under two keys is a broken invariant.
  bool Publish(BlockId block, const ContentKey& key);

  // The block of a key, or kNone.
  BlockId Find(const ContentKey& key) const { return index_.Find(key, keys_); }
  // Whether the block is findable under the key: cheaper than to find it.
  bool HasKey(BlockId block, const ContentKey& key) const {
    return at(block).keyed && keys_[static_cast<uint32_t>(block)] == key;
  }

  // Hints that the key is about to be looked for or published, or the block to be used.
  void Prefetch(const ContentKey& key) const { index_.Prefetch(key); }
  void Prefetch(BlockId block) const {
    __builtin_prefetch(&blocks_[static_cast<uint32_t>(block)], 1);
    __builtin_prefetch(&keys_[static_cast<uint32_t>(block)], 1);
  }

  uint32_t holders(BlockId block) const;

  // Aborts when the lists, the counts and the index disagree. O(total()).
  void CheckInvariants() const;

 private:
  static constexpr uint32_t kNil = 0xffffffffu;
  struct Block {  // small: many are touched at a time, when a sequence begins or ends
    uint32_t holders : 31 = 0;
    uint32_t keyed : 1 = 0;
    uint32_t older = kNil, newer = kNil;  // neighbours among the cached ones
  };

  Block& at(BlockId block);
  const Block& at(BlockId block) const;
  void Link(uint32_t index);  // as the most recently released one
  void Unlink(uint32_t index);

  std::vector<Block> blocks_;
  std::vector<ContentKey> keys_;  // of the keyed ones, by block
  std::vector<uint32_t> free_;
  uint32_t oldest_ = kNil, newest_ = kNil;
  uint32_t num_cached_ = 0;
  uint64_t evictions_ = 0;
  BlockIndex index_;
};

}  // namespace hexad
