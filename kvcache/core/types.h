#pragma once

// The smallest shared vocabulary: tokens, block ids, content keys. The lowest library owns it.

#include <compare>
#include <cstdint>
#include <utility>

namespace hexad {

// A token of the model's vocabulary. kPending stands in a step plan for "the token that the
// previous step samples for this row", so that step n+1 can be planned while step n runs.
enum class TokenId : int32_t { kPending = -1 };

// One physical block of a group's pool; an index into that pool.
enum class BlockId : uint32_t { kNone = 0xffffffffu };

// A block table of one replica: a reused index in the low half, its incarnation in the high half.
enum class TableId : uint64_t {};

// Tokens per content key, on every process, device and tier. Pool blocks are multiples of it.
inline constexpr int32_t kUnitTokens = 16;

// Identity of the KV of one full unit given everything before it: the first 128 bits of
// SHA-256(parent key, 16 token ids, extra keys). See keys.h.
struct ContentKey {
  uint64_t high = 0;
  uint64_t low = 0;

  friend auto operator<=>(const ContentKey&, const ContentKey&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const ContentKey& key) {
    return H::combine(std::move(state), key.high, key.low);
  }
};

}  // namespace hexad
