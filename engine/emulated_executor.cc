#include "engine/emulated_executor.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"

namespace hexad {
namespace {

// SplitMix64: each (seed, position) has its own well-mixed value.
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

class EmulatedExecutor final : public Executor {
 public:
  explicit EmulatedExecutor(EmulatedOptions options)
      : options_(std::move(options)), thread_([this] { Run(); }) {}

  ~EmulatedExecutor() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  const ModelShape& shape() const override { return options_.shape; }
  const std::vector<uint32_t>& pool_blocks() const override { return options_.pool_blocks; }

  void Submit(StepPlan plan, Done done) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.emplace_back(std::move(plan), std::move(done));
    }
    changed_.notify_one();
  }

 private:
  struct Slot {
    RequestId request{};
    uint64_t seed = 0;
    int32_t min_position = 0;  // no end of sequence below it
  };

  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto [plan, done] = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const auto start = std::chrono::steady_clock::now();
      absl::StatusOr<StepResult> result = Apply(plan);
      if (result.ok()) {
        // The step "runs": modelled time passes. A wait and no sleep, so nothing else holds it up.
        const auto end = start + absl::ToChronoNanoseconds(result->device_time / options_.speed_up);
        lock.lock();
        never_.wait_until(lock, end, [] { return false; });
        lock.unlock();
      }
      done(std::move(result));
      lock.lock();
    }
  }

  absl::Status CheckBlocks(const StepPlan& plan) const {
    for (const BlockAppend& append : plan.appends) {
      if (append.group >= options_.pool_blocks.size() ||
          uint64_t{append.first_block} + append.num_blocks > plan.blocks.size()) {
        return absl::InvalidArgumentError("an append is out of the plan's range");
      }
      for (uint32_t i = 0; i < append.num_blocks; ++i) {
        const auto block = static_cast<uint32_t>(plan.blocks[append.first_block + i]);
        if (block >= options_.pool_blocks[append.group]) {
          return absl::InvalidArgumentError(
              absl::StrFormat("block %d of group %d is not in the pool", block, append.group));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> Apply(const StepPlan& plan) {
    for (const SlotId slot : plan.closed) slots_.erase(slot);
    for (const SlotOpen& open : plan.opened) {
      slots_[open.slot] = {open.request, open.sampling.seed,
                           static_cast<int32_t>(open.prompt.size()) + open.min_new_tokens};
    }
    if (absl::Status status = CheckBlocks(plan); !status.ok()) return status;

    StepResult result;
    result.step = plan.step;
    StepShape shape;
    for (const Row& row : plan.rows) {
      const auto it = slots_.find(row.slot);
      if (it == slots_.end()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("slot %d is not open", static_cast<int32_t>(row.slot)));
      }
      const int64_t first = row.position + 1;  // keys that the first token attends to
      const int64_t context_tokens = row.num_tokens * (2 * first + row.num_tokens - 1) / 2;
      if (row.num_tokens == 1 && row.sample) {
        ++shape.decode_rows;
        shape.decode_context_tokens += context_tokens;
      } else {
        shape.prefill_tokens += row.num_tokens;
        shape.prefill_context_tokens += context_tokens;
      }
      if (!row.sample) continue;
      ++shape.sampled_rows;
      const int32_t position = row.position + row.num_tokens;
      result.rows.push_back({.slot = row.slot,
                             .request = it->second.request,
                             .tokens = {Sample(it->second, position)}});
    }
    result.device_time = options_.cost.StepTime(shape);
    return result;
  }

  SampledToken Sample(const Slot& slot, int32_t position) const {
    const uint64_t random = Mix(slot.seed ^ Mix(static_cast<uint64_t>(position)));
    SampledToken sampled;
    const double chance = static_cast<double>(Mix(random) >> 11) * 0x1p-53;
    if (static_cast<int32_t>(options_.end_of_sequence) >= 0 && position >= slot.min_position &&
        chance < options_.end_probability) {
      sampled.token = options_.end_of_sequence;
    } else {
      const auto range = static_cast<uint64_t>(options_.end_token - options_.first_token);
      sampled.token = TokenId{options_.first_token + static_cast<int32_t>(random % range)};
    }
    return sampled;
  }

  const EmulatedOptions options_;
  absl::flat_hash_map<SlotId, Slot> slots_;  // owned by the thread
  std::mutex mutex_;
  std::condition_variable changed_, never_;
  std::deque<std::pair<StepPlan, Done>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Executor> MakeEmulatedExecutor(EmulatedOptions options) {
  return std::make_unique<EmulatedExecutor>(std::move(options));
}

}  // namespace hexad
