#include "kvcache/core/block_pool.h"

#include "kvcache/core/check.h"

namespace hexad {

BlockPool::BlockPool(uint32_t num_blocks)
    : blocks_(num_blocks), keys_(num_blocks), index_(num_blocks) {
  HEXAD_CHECK(num_blocks < kNil, "block ids are 32 bits");
  free_.reserve(num_blocks);
  // Low ids first: a lightly used pool touches little memory.
  for (uint32_t index = num_blocks; index > 0; --index) free_.push_back(index - 1);
}

BlockPool::Block& BlockPool::at(BlockId block) {
  HEXAD_CHECK(static_cast<uint32_t>(block) < blocks_.size(), "no such block");
  return blocks_[static_cast<uint32_t>(block)];
}

const BlockPool::Block& BlockPool::at(BlockId block) const {
  HEXAD_CHECK(static_cast<uint32_t>(block) < blocks_.size(), "no such block");
  return blocks_[static_cast<uint32_t>(block)];
}

void BlockPool::Link(uint32_t index) {
  Block& block = blocks_[index];
  block.older = newest_;
  block.newer = kNil;
  (newest_ == kNil ? oldest_ : blocks_[newest_].newer) = index;
  newest_ = index;
  ++num_cached_;
}

void BlockPool::Unlink(uint32_t index) {
  Block& block = blocks_[index];
  (block.older == kNil ? oldest_ : blocks_[block.older].newer) = block.newer;
  (block.newer == kNil ? newest_ : blocks_[block.newer].older) = block.older;
  block.older = block.newer = kNil;
  --num_cached_;
}

BlockId BlockPool::Allocate() {
  HEXAD_CHECK(available() > 0, "allocation from an empty pool");
  uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    index = oldest_;
    Unlink(index);
    index_.Erase(keys_[index], index);
    blocks_[index].keyed = 0;
    ++evictions_;
  }
  blocks_[index].holders = 1;
  return BlockId{index};
}

void BlockPool::Hold(BlockId id) {
  Block& block = at(id);
  HEXAD_CHECK(block.holders > 0 || block.keyed, "a free block cannot be held");
  if (block.holders++ == 0) Unlink(static_cast<uint32_t>(id));
}

void BlockPool::Release(BlockId id) {
  Block& block = at(id);
  HEXAD_CHECK(block.holders > 0, "a block was released twice");
  if (--block.holders > 0) return;
  if (block.keyed) {
    Link(static_cast<uint32_t>(id));
  } else {
    free_.push_back(static_cast<uint32_t>(id));
  }
}

bool BlockPool::Publish(BlockId id, const ContentKey& key) {
  Block& block = at(id);
  const uint32_t index = static_cast<uint32_t>(id);
  HEXAD_CHECK(block.holders > 0, "only a held block can be published");
  HEXAD_CHECK(!block.keyed || keys_[index] == key, "a block's content changed under its key");
  if (block.keyed) return true;
  if (!index_.Insert(key, index, keys_)) return false;
  block.keyed = 1;
  keys_[index] = key;
  return true;
}

uint32_t BlockPool::holders(BlockId block) const { return at(block).holders; }

void BlockPool::CheckInvariants() const {
  uint32_t held = 0, keyed = 0;
  for (uint32_t index = 0; index < blocks_.size(); ++index) {
    const Block& block = blocks_[index];
    held += block.holders > 0;
    if (!block.keyed) continue;
    ++keyed;
    HEXAD_CHECK(Find(keys_[index]) == BlockId{index}, "a keyed block is not indexed");
  }
  HEXAD_CHECK(keyed == index_.size(), "the index names a block without that key");
  HEXAD_CHECK(held + free_.size() + num_cached_ == blocks_.size(), "a block is lost");
  std::vector<bool> seen(blocks_.size());
  for (uint32_t index : free_) {
    HEXAD_CHECK(!seen[index], "a block is free twice");
    HEXAD_CHECK(blocks_[index].holders == 0 && !blocks_[index].keyed, "a used block is free");
    seen[index] = true;
  }
  uint32_t linked = 0;
  for (uint32_t index = oldest_, last = kNil; index != kNil; index = blocks_[index].newer) {
    HEXAD_CHECK(blocks_[index].older == last, "the order of cached blocks is torn");
    HEXAD_CHECK(blocks_[index].holders == 0 && blocks_[index].keyed, "a used block is cached");
    HEXAD_CHECK(!seen[index] && ++linked <= num_cached_, "a block is cached twice");
    seen[index] = true;
    last = index;
  }
  HEXAD_CHECK(linked == num_cached_, "the count of cached blocks is wrong");
}

}  // namespace hexad
