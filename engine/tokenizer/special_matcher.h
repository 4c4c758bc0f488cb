#pragma once

// Finds tokens that are written whole in the text: the leftmost, and of those the longest. A byte
// trie; a search costs at most the text's length times the longest token's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hexad {

class SpecialMatcher final {
 public:
  struct Match {
    size_t begin = 0;
    size_t length = 0;
    int32_t id = -1;
  };

  SpecialMatcher();
  // An empty text is ignored; of equal texts the last counts.
  void Add(std::string_view text, int32_t id);
  // The first match that starts at or after `from`.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  std::array<bool, 256> starts_{};
  absl::flat_hash_map<uint64_t, uint32_t> edges_;  // (node << 8 | byte) -> node
  std::vector<int32_t> ids_;                       // per node, -1: no token ends here
};

}  // namespace hexad
