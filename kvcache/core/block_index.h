#pragma once

// Which block has which content key, for one pool.
//
// Open addressing with linear probing over words of (32 bits of the key's hash, block id), sized
// once and at most half full: a look-up is one cache line, nearly always, and can be prefetched;
// nothing is ever rehashed in the middle of a step. The keys themselves are the pool's, by block,
// and are compared only where the 32 bits agree. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kvcache/core/types.h"

namespace hexad {

class BlockIndex final {
 public:
  explicit BlockIndex(uint32_t num_blocks);

  // The block under `key`, or kNone. keys: of the blocks, by id.
  BlockId Find(const ContentKey& key, const std::vector<ContentKey>& keys) const;
  // False when a block has the key already. REQUIRES: fewer than num_blocks are in it.
  bool Insert(const ContentKey& key, uint32_t block, const std::vector<ContentKey>& keys);
  // REQUIRES: `block` is in it under `key`.
  void Erase(const ContentKey& key, uint32_t block);

  // A hint that `key` is about to be looked for.
  void Prefetch(const ContentKey& key) const { __builtin_prefetch(&entries_[HomeOf(TagOf(key))]); }

  uint32_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no block has the id 0xffffffff

  // Keys are SHA-256 under a secret: nobody outside can aim at a place.
  static uint32_t TagOf(const ContentKey& key) {
    return static_cast<uint32_t>(
        ((key.low ^ (key.high * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u) >> 32);
  }
  size_t HomeOf(uint32_t tag) const { return tag & mask_; }

  size_t mask_ = 0;
  uint32_t size_ = 0;
  std::vector<uint64_t> entries_;  // tag in the high half, block in the low half
};

}  // namespace hexad
