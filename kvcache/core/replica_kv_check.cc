#include <algorithm>

#include "kvcache/core/check.h"
#include "kvcache/core/replica_kv.h"

namespace hexad {

void ReplicaKv::CheckInvariants() const {
  std::vector<std::vector<uint32_t>> holders(pools_.size());
  for (size_t g = 0; g < pools_.size(); ++g) holders[g].resize(pools_[g].total());
  const auto count = [&](const HeldBlock& held) {
    ++holders[held.group][static_cast<uint32_t>(held.block)];
  };

  size_t open_tables = 0;
  for (uint32_t index = 0; index < tables_.size(); ++index) {
    const Table& table = tables_[index];
    if (!table.open) continue;
    ++open_tables;
    const TableId id{static_cast<uint64_t>(table.incarnation) << 32 | index};
    HEXAD_CHECK(table.ready <= table.awaited && table.last_step <= begun_steps_, "a torn table");
    for (uint32_t g = 0; g < pools_.size(); ++g) {
      const GroupTable& entries = table.groups[g];
      HEXAD_CHECK(entries.first <= entries.blocks.size() &&
                      entries.first <= FirstInWindow(g, table.computed),
                  "blocks inside a window are missing");
      for (uint32_t i = 0; i < entries.blocks.size(); ++i) {
        HEXAD_CHECK((entries.blocks[i] == BlockId::kNone) == (i < entries.first), "a torn table");
        if (i >= entries.first) count({g, entries.blocks[i]});
      }
    }
    if (table.awaited == table.ready) continue;
    const Promises::Promise* next = promises_.Find(table.keys[table.ready - table.first_key]);
    HEXAD_CHECK(next && std::count(next->followers.begin(), next->followers.end(), id) == 1,
                "a table waits for a block that nobody promised");
  }
  HEXAD_CHECK(open_tables + free_tables_.size() == tables_.size(), "a table is lost");

  std::vector<uint32_t> returning(pools_.size());
  HEXAD_CHECK(step_releases_.size() == begun_steps_ - ended_steps_, "a step is lost");
  for (const std::vector<HeldBlock>& releases : step_releases_) {
    for (const HeldBlock& held : releases) {
      count(held);
      ++returning[held.group];
    }
  }
  for (const HeldBlock& held : copy_holds_) count(held);
  HEXAD_CHECK(returning == returning_, "the count of returning blocks is wrong");

  for (size_t g = 0; g < pools_.size(); ++g) {
    pools_[g].CheckInvariants();
    for (uint32_t block = 0; block < pools_[g].total(); ++block) {
      HEXAD_CHECK(pools_[g].holders(BlockId{block}) == holders[g][block],
                  "a block's holders are not those that hold it");
    }
  }
  for (const auto& [key, promise] : promises_.all()) {
    const Table& producer = at(promise.producer);
    const size_t kept = std::max(0, producer.computed / layout_.block_tokens - producer.first_key);
    HEXAD_CHECK(kept <= producer.keys.size() &&
                    std::find(producer.keys.begin() + kept, producer.keys.end(), key) !=
                        producer.keys.end(),
                "a promise that its producer does not compute");
    for (TableId follower : promise.followers) {
      const Table& table = at(follower);
      HEXAD_CHECK(table.ready < table.awaited && table.keys[table.ready - table.first_key] == key,
                  "a promise with a follower that does not wait for it");
    }
  }
}

}  // namespace hexad
