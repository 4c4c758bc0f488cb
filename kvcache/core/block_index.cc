#include "kvcache/core/block_index.h"

#include <algorithm>
#include <bit>

#include "kvcache/core/check.h"

namespace hexad {

BlockIndex::BlockIndex(uint32_t num_blocks) {
  const uint64_t places = std::bit_ceil(std::max<uint64_t>(8, uint64_t{num_blocks} * 2));
  mask_ = static_cast<size_t>(places - 1);
  entries_.assign(static_cast<size_t>(places), kEmpty);
}

BlockId BlockIndex::Find(const ContentKey& key, const std::vector<ContentKey>& keys) const {
  const uint32_t tag = TagOf(key);
  for (size_t place = HomeOf(tag); entries_[place] != kEmpty; place = (place + 1) & mask_) {
    if (entries_[place] >> 32 != tag) continue;
    const uint32_t block = static_cast<uint32_t>(entries_[place]);
    if (keys[block] == key) return BlockId{block};
  }
  return BlockId::kNone;
}

bool BlockIndex::Insert(const ContentKey& key, uint32_t block,
                        const std::vector<ContentKey>& keys) {
  const uint32_t tag = TagOf(key);
  size_t place = HomeOf(tag);
  for (; entries_[place] != kEmpty; place = (place + 1) & mask_) {
    if (entries_[place] >> 32 != tag) continue;
    if (keys[static_cast<uint32_t>(entries_[place])] == key) return false;
  }
  entries_[place] = uint64_t{tag} << 32 | block;
  HEXAD_CHECK(++size_ <= entries_.size() / 2, "more keys than blocks");
  return true;
}

void BlockIndex::Erase(const ContentKey& key, uint32_t block) {
  const uint32_t tag = TagOf(key);
  const uint64_t entry = uint64_t{tag} << 32 | block;
  size_t hole = HomeOf(tag);
  for (; entries_[hole] != entry; hole = (hole + 1) & mask_) {
    HEXAD_CHECK(entries_[hole] != kEmpty, "a keyed block is not indexed");
  }
  // What follows moves up, unless it would come to lie before its home.
  for (size_t place = (hole + 1) & mask_; entries_[place] != kEmpty; place = (place + 1) & mask_) {
    const size_t home = HomeOf(static_cast<uint32_t>(entries_[place] >> 32));
    if (((place - home) & mask_) < ((place - hole) & mask_)) continue;
    entries_[hole] = entries_[place];
    hole = place;
  }
  entries_[hole] = kEmpty;
  --size_;
}

}  // namespace hexad
