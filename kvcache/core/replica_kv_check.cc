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
    const Head& head = heads_[index];
    if (!head.open) continue;
    ++open_tables;
    const TableId id{static_cast<uint64_t>(head.incarnation) << 32 | index};
    HEXAD_CHECK(table.ready <= table.awaited && head.last_step <= begun_steps_, "a torn table");
    HEXAD_CHECK(
        head.computed < head.next_change && static_cast<uint32_t>(head.computed) <= head.capacity,
        "a block is full and has not been published");
    for (uint32_t g = 0; g < pools_.size(); ++g) {
      const GroupTable& entries = table.groups[g];
      HEXAD_CHECK(entries.first <= entries.blocks.size() &&
                      entries.blocks.size() * layout_.block_tokens == head.capacity &&
                      entries.first <= FirstInWindow(g, head.computed),
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
  const auto count_run = [&](const HeldRun& run) {
    for (size_t i = run.first; i < run.blocks.size(); ++i) {
      count({run.group, run.blocks[i]});
      ++returning[run.group];
    }
  };
  for (const StepReleases& releases : step_releases_) {
    for (const HeldBlock& held : releases.blocks) {
      count(held);
      ++returning[held.group];
    }
    for (const HeldRun& run : releases.runs) count_run(run);
  }
  int64_t run_blocks = 0;
  for (const HeldRun& run : runs_) {
    count_run(run);
    run_blocks += static_cast<int64_t>(run.blocks.size()) - run.first;
  }
  HEXAD_CHECK(run_blocks == run_blocks_, "the count of blocks to return is wrong");
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
    const size_t kept =
        std::max(0, computed_tokens(promise.producer) / layout_.block_tokens - producer.first_key);
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
