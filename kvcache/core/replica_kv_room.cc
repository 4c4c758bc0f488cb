// What room there is, and how it comes back.

#include <algorithm>
#include <limits>
#include <utility>

#include "kvcache/core/replica_kv.h"

namespace hexad {
namespace {

// With every step that ends, so many blocks of ended tables go back, or this part of them: no step
// pays for a long sequence alone, and no more wait than eight steps bring.
constexpr int64_t kReleasesPerStep = 1024;
constexpr int64_t kStepsToRelease = 8;

}  // namespace

// The most tokens with which every group needs no more than its own blocks and `room`.
template <typename Room>
int64_t ReplicaKv::MostTokens(TableId id, Room room) const {
  const Table& table = at(id);
  int64_t most = std::numeric_limits<int32_t>::max();
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const int64_t blocks = static_cast<int64_t>(table.groups[g].blocks.size()) + room(g);
    most = std::min(most, blocks * layout_.block_tokens);
  }
  return most;
}

int32_t ReplicaKv::MaxGrow(TableId id, int32_t wanted_tokens) {
  const auto most = [&] {
    return MostTokens(id, [this](uint32_t g) -> int64_t { return pools_[g].available(); });
  };
  if (most() < wanted_tokens) ReleaseAllRuns();
  return static_cast<int32_t>(std::min<int64_t>(wanted_tokens, most()));
}

bool ReplicaKv::CanGrowLater(TableId id, int32_t scheduled_tokens, int32_t num_tokens) const {
  return num_tokens <= MostTokens(id, [&](uint32_t g) -> int64_t {
           const int64_t below_window =
               static_cast<int64_t>(FirstInWindow(g, scheduled_tokens)) - at(id).groups[g].first;
           return pools_[g].available() + returning_[g] + std::max<int64_t>(0, below_window);
         });
}

bool ReplicaKv::CanGrowUnbounded(TableId id, int64_t num_tokens) {
  const auto fits = [&] {
    return num_tokens <= MostTokens(id, [this](uint32_t g) -> int64_t {
             return layout_.groups[g].kind == GroupKind::kWindow
                        ? std::numeric_limits<int32_t>::max()
                        : pools_[g].available();
           });
  };
  return fits() || (ReleaseAllRuns() && fits());
}

bool ReplicaKv::HasRoomUnbounded(int64_t blocks) {
  const auto has = [&] {
    for (size_t g = 0; g < pools_.size(); ++g) {
      if (layout_.groups[g].kind == GroupKind::kWindow) continue;
      if (pools_[g].available() < blocks) return false;
    }
    return true;
  };
  return has() || (ReleaseAllRuns() && has());
}

int32_t ReplicaKv::CapacityTokens() const {
  const int64_t block_tokens = layout_.block_tokens;
  int64_t capacity = std::numeric_limits<int32_t>::max();
  for (size_t g = 0; g < pools_.size(); ++g) {
    const KvGroup& group = layout_.groups[g];
    const int64_t total = pools_[g].total();
    // The window positions that the next token sees, itself included, wherever they lie in blocks.
    const int64_t window_blocks = (group.window_tokens + block_tokens - 2) / block_tokens + 1;
    if (group.kind == GroupKind::kWindow && total >= window_blocks) continue;
    capacity = std::min(capacity, total * block_tokens);
  }
  return static_cast<int32_t>(capacity);
}

// A step that uses the table has begun and not ended.
bool ReplicaKv::InFlight(const Head& head) const { return head.last_step > ended_steps_; }

void ReplicaKv::GiveBack(const Head& head, uint32_t group, BlockId block) {
  if (!InFlight(head)) return pools_[group].Release(block);
  step_releases_[head.last_step - ended_steps_ - 1].blocks.push_back({group, block});
  ++returning_[group];
}

void ReplicaKv::GiveBack(const Head& head, HeldRun run) {
  const int64_t blocks = static_cast<int64_t>(run.blocks.size()) - run.first;
  if (blocks == 0) return;
  returning_[run.group] += static_cast<uint32_t>(blocks);
  if (InFlight(head)) {
    step_releases_[head.last_step - ended_steps_ - 1].runs.push_back(std::move(run));
  } else {
    runs_.push_back(std::move(run));
    run_blocks_ += blocks;
  }
}

// The tail first, so that it is evicted before the prefix it hangs from.
void ReplicaKv::ReleaseRuns(int64_t most_blocks) {
  while (most_blocks > 0 && !runs_.empty()) {
    HeldRun& run = runs_.front();
    BlockPool& pool = pools_[run.group];
    const int64_t here = static_cast<int64_t>(run.blocks.size()) - run.first;
    const int64_t releases = std::min(most_blocks, here);
    for (int64_t i = 0; i < releases; ++i) {
      pool.Release(run.blocks.back());
      run.blocks.pop_back();
    }
    returning_[run.group] -= static_cast<uint32_t>(releases);
    run_blocks_ -= releases;
    most_blocks -= releases;
    if (releases == here) runs_.pop_front();
  }
}

// Between steps nobody waits for this thread.
void ReplicaKv::ReleaseSomeRuns() {
  ReleaseRuns(ended_steps_ == begun_steps_
                  ? run_blocks_
                  : std::max(kReleasesPerStep, run_blocks_ / kStepsToRelease));
}

bool ReplicaKv::ReleaseAllRuns() {
  if (runs_.empty()) return false;
  ReleaseRuns(run_blocks_);
  return true;
}

void ReplicaKv::BeginStep(std::span<const TableId> tables) {
  ++begun_steps_;
  for (TableId id : tables) heads_[IndexOf(id)].last_step = begun_steps_;
  for (const HeldBlock& held : copy_holds_) ++returning_[held.group];
  step_releases_.push_back({std::exchange(copy_holds_, {}), {}});
}

void ReplicaKv::EndStep() {
  HEXAD_CHECK(ended_steps_ < begun_steps_, "no step is in flight");
  ++ended_steps_;
  StepReleases releases = std::move(step_releases_.front());
  step_releases_.pop_front();
  for (const HeldBlock& held : releases.blocks) {
    --returning_[held.group];
    pools_[held.group].Release(held.block);
  }
  for (HeldRun& run : releases.runs) {
    run_blocks_ += static_cast<int64_t>(run.blocks.size()) - run.first;
    runs_.push_back(std::move(run));
  }
  ReleaseSomeRuns();
}

}  // namespace hexad
