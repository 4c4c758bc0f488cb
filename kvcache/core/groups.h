#pragma once

// KV groups: layers whose KV has the same retention share one block table.
//
// A prefix of length p is usable when every full or latent group has all blocks below p, every
// window group has those of the last window_tokens - 1 tokens below p, and every state group has a
// snapshot at p.

#include <cstdint>
#include <vector>

namespace hexad {

enum class GroupKind : uint8_t { kFull, kWindow, kLatent, kState };

struct KvGroup {
  GroupKind kind = GroupKind::kFull;
  int32_t window_tokens = 0;    // kWindow: a query at position q sees keys in (q - window, q]
  std::vector<int32_t> layers;  // the model's layer indices, ascending
  int64_t bytes_per_token = 0;  // all layers and parts of the group
};

struct KvLayout {
  int32_t block_tokens = 16;  // tokens per pool block, a multiple of kUnitTokens
  std::vector<KvGroup> groups;
};

}  // namespace hexad
