#pragma once

// Blocks that some table is computing: content key -> who computes it and who waits for it.
// Not thread-safe.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kvcache/core/types.h"

namespace hexad {

class Promises final {
 public:
  struct Promise {
    TableId producer{};
    std::vector<TableId> followers;  // those whose next missing block this is
  };

  // False when the key is promised already.
  bool Add(const ContentKey& key, TableId producer);
  const Promise* Find(const ContentKey& key) const;
  void AddFollower(const ContentKey& key, TableId follower);
  void RemoveFollower(const ContentKey& key, TableId follower);
  // Kept or broken: the promise is gone; its followers are returned.
  std::vector<TableId> Remove(const ContentKey& key);

  const absl::flat_hash_map<ContentKey, Promise>& all() const { return promises_; }

 private:
  absl::flat_hash_map<ContentKey, Promise> promises_;
};

}  // namespace hexad
