#include "kernels/shim/simt.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/shim/fiber.h"

namespace hexad::shim {
namespace {

constexpr int kWarpLanes = 32;
constexpr size_t kStackBytes = size_t{128} << 10;  // ASan's frames are several times the plain ones
constexpr unsigned kMaxThreads = 1024;             // of a block, on every device so far

struct KernelAborted {};

// kFresh: has not begun this block; kReady: has, and can go on.
enum class State : uint8_t { kFresh, kReady, kAtBarrier, kAtWarpOperation, kDone };

struct Lane {
  ThreadIndices indices;
  State state = State::kDone;
  // What it waits for.
  const char* operation = "";
  const char* file = "";
  int line = 0;
  uint32_t mask = 0;
  uint64_t value = 0;
  int source = 0;  // lane of its warp
  uint32_t votes = 0;
  std::unique_ptr<Fiber> fiber;
};

std::string Place(const Lane& lane) {
  return std::string(lane.file) + ":" + std::to_string(lane.line);
}

std::string Name(const Dim3& at) {
  return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) + ")";
}

Dim3 Unflatten(unsigned flat, const Dim3& dim) {
  return Dim3(flat % dim.x, flat / dim.x % dim.y, flat / dim.x / dim.y);
}

// The threads of one block, reused for every block of a launch.
class BlockRunner final {
 public:
  BlockRunner(Dim3 grid, Dim3 block, size_t shared_bytes, const std::function<void()>& kernel)
      : shared_bytes_(shared_bytes),
        kernel_(kernel),
        stacks_(block.x * block.y * block.z, kStackBytes),
        lanes_(stacks_.count()) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].indices = {Unflatten(static_cast<unsigned>(i), block), Dim3(0, 0, 0), block, grid};
      lanes_[i].fiber = std::make_unique<Fiber>(
          stacks_.bottom(i), kStackBytes, [this, i](Fiber& fiber) { Body(lanes_[i], fiber); });
    }
  }
  ~BlockRunner() {
    quit_ = true;
    for (Lane& lane : lanes_) Run(lane);
  }

  // False: see error().
  bool RunBlock(Dim3 block, ThreadOrder order, std::mt19937_64& random);
  const std::string& error() const { return error_; }

  static BlockRunner& current() { return *current_; }
  Lane& lane() { return *running_; }
  int lane_id() const { return static_cast<int>((running_ - lanes_.data()) % kWarpLanes); }

  void Wait(State state, const char* operation, const char* file, int line) {
    Lane& lane = *running_;
    lane.state = state;
    lane.operation = operation;
    lane.file = file;
    lane.line = line;
    lane.fiber->Yield();
    if (aborting_) throw KernelAborted{};
  }

  void* Shared(size_t bytes, std::string_view file, int line) {
    std::unique_ptr<std::byte[]>& array = shared_[{file, line}];
    if (array == nullptr) array = Poisoned(bytes);
    return array.get();
  }
  void* dynamic_shared() const { return dynamic_shared_.get(); }

 private:
  static std::unique_ptr<std::byte[]> Poisoned(size_t bytes) {
    std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
    std::memset(memory.get(), 0xff, bytes);
    return memory;
  }

  void Body(Lane& lane, Fiber& fiber) {
    while (!quit_) {
      try {
        kernel_();
      } catch (const KernelAborted&) {
      } catch (...) {
        Fail("the kernel threw an exception");
      }
      lane.state = State::kDone;
      fiber.Yield();
    }
  }

  void Run(Lane& lane) {
    BlockRunner* const outer = std::exchange(current_, this);
    running_ = &lane;
    lane.fiber->Resume();
    current_ = outer;
  }

  void Fail(const std::string& what) {
    if (error_.empty()) error_ = "block " + Name(lanes_[0].indices.block) + ": " + what;
  }
  void Abort();
  // Whether all lanes of its mask wait for the same operation as `lane`; Fail()s if one never will.
  bool WarpGroupReady(size_t first, const Lane& lane);
  bool ResolveWarp(size_t first);
  void ResolveBarrier();

  static thread_local BlockRunner* current_;

  size_t shared_bytes_;
  const std::function<void()>& kernel_;
  StackPool stacks_;
  std::vector<Lane> lanes_;
  Lane* running_ = nullptr;
  std::map<std::pair<std::string_view, int>, std::unique_ptr<std::byte[]>> shared_;
  std::unique_ptr<std::byte[]> dynamic_shared_;
  std::string error_;
  bool aborting_ = false;
  bool quit_ = false;
};

thread_local BlockRunner* BlockRunner::current_ = nullptr;

bool BlockRunner::RunBlock(Dim3 block, ThreadOrder order, std::mt19937_64& random) {
  shared_.clear();
  dynamic_shared_ = Poisoned(shared_bytes_);
  for (Lane& lane : lanes_) {
    lane.indices.block = block;
    lane.state = State::kFresh;
  }
  std::vector<size_t> turn(lanes_.size());
  std::iota(turn.begin(), turn.end(), size_t{0});
  if (order == ThreadOrder::kReverse) std::reverse(turn.begin(), turn.end());

  for (;;) {
    if (order == ThreadOrder::kRandom) std::shuffle(turn.begin(), turn.end(), random);
    for (const size_t i : turn) {
      if (lanes_[i].state == State::kFresh || lanes_[i].state == State::kReady) Run(lanes_[i]);
    }
    if (std::all_of(lanes_.begin(), lanes_.end(),
                    [](const Lane& lane) { return lane.state == State::kDone; })) {
      return error_.empty();
    }
    bool progress = false;
    for (size_t first = 0; first < lanes_.size(); first += kWarpLanes) {
      progress |= ResolveWarp(first);
    }
    if (!progress && error_.empty()) ResolveBarrier();
    if (!error_.empty()) {
      Abort();
      return false;
    }
  }
}

void BlockRunner::Abort() {
  aborting_ = true;
  for (Lane& lane : lanes_) {
    // Throws in the lane's Wait(): all of its stack is unwound before the fiber goes.
    if (lane.state != State::kFresh && lane.state != State::kDone) Run(lane);
    lane.state = State::kDone;
  }
}

bool BlockRunner::WarpGroupReady(size_t first, const Lane& lane) {
  const int self = static_cast<int>(&lane - &lanes_[first]);
  const std::string what = std::string(lane.operation) + " at " + Place(lane);
  if ((lane.mask >> self & 1) == 0) {
    Fail("lane " + std::to_string(self) + " is not in its own mask of " + what);
    return false;
  }
  for (int other = 0; other < kWarpLanes; ++other) {
    if ((lane.mask >> other & 1) == 0) continue;
    const std::string name = ", lane " + std::to_string(other) + " of its mask ";
    if (first + other >= lanes_.size()) {
      Fail(what + name + "does not exist");
      return false;
    }
    const Lane& member = lanes_[first + other];
    if (member.state == State::kDone) {
      Fail(what + name + "has exited");
      return false;
    }
    if (member.state == State::kAtBarrier) {
      Fail(what + name + "waits at the barrier of " + Place(member));
      return false;
    }
    if (member.state != State::kAtWarpOperation || member.mask != lane.mask ||
        std::string_view(member.operation) != lane.operation) {
      return false;
    }
  }
  return true;
}

bool BlockRunner::ResolveWarp(size_t first) {
  const size_t end = std::min(first + kWarpLanes, lanes_.size());
  bool progress = false;
  for (size_t i = first; i < end; ++i) {
    if (lanes_[i].state != State::kAtWarpOperation || !WarpGroupReady(first, lanes_[i])) continue;
    const uint32_t mask = lanes_[i].mask;
    uint64_t posted[kWarpLanes] = {};
    uint32_t votes = 0;
    for (size_t j = first; j < end; ++j) {
      if ((mask >> (j - first) & 1) == 0) continue;
      posted[j - first] = lanes_[j].value;
      if (lanes_[j].value != 0) votes |= uint32_t{1} << (j - first);
    }
    for (size_t j = first; j < end; ++j) {
      if ((mask >> (j - first) & 1) == 0) continue;
      Lane& lane = lanes_[j];
      if ((mask >> lane.source & 1) == 0) {
        Fail(std::string(lane.operation) + " at " + Place(lane) + ", lane " +
             std::to_string(j - first) + " reads lane " + std::to_string(lane.source) +
             ", which is not in the mask");
      }
      lane.value = posted[lane.source];
      lane.votes = votes;
      lane.state = State::kReady;
    }
    progress = true;
  }
  return progress;
}

void BlockRunner::ResolveBarrier() {
  const Lane* waiting = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.state == State::kAtWarpOperation) {
      Fail(std::string(lane.operation) + " at " + Place(lane) +
           ": the lanes of its mask disagree on the operation or the mask");
      return;
    }
    if (lane.state == State::kAtBarrier && waiting == nullptr) waiting = &lane;
  }
  for (const Lane& lane : lanes_) {
    if (lane.state == State::kDone) {
      Fail("divergent barrier: thread " + Name(waiting->indices.thread) + " waits at " +
           Place(*waiting) + ", thread " + Name(lane.indices.thread) + " has exited");
      return;
    }
    if (lane.line != waiting->line || std::string_view(lane.file) != waiting->file) {
      Fail("divergent barrier: thread " + Name(waiting->indices.thread) + " waits at " +
           Place(*waiting) + ", thread " + Name(lane.indices.thread) + " at " + Place(lane));
      return;
    }
  }
  for (Lane& lane : lanes_) lane.state = State::kReady;
}

}  // namespace

struct Stream::Impl {
  ThreadOrder order;
  std::mt19937_64 random;
  std::string error;
};

Stream::Stream(ThreadOrder order, uint64_t seed)
    : impl_(std::make_unique<Impl>(Impl{order, std::mt19937_64(seed), {}})) {}
Stream::~Stream() = default;

const std::string& Stream::error() const { return impl_->error; }

void Stream::Launch(Dim3 grid, Dim3 block, size_t shared_bytes,
                    const std::function<void()>& kernel) {
  if (!impl_->error.empty()) return;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > kMaxThreads || blocks == 0 || blocks > UINT32_MAX) {
    impl_->error = "launch of grid " + Name(grid) + ", block " + Name(block) + " is not possible";
    return;
  }
  std::vector<unsigned> turn(blocks);
  std::iota(turn.begin(), turn.end(), 0u);
  if (impl_->order == ThreadOrder::kReverse) std::reverse(turn.begin(), turn.end());
  if (impl_->order == ThreadOrder::kRandom) std::shuffle(turn.begin(), turn.end(), impl_->random);

  BlockRunner runner(grid, block, shared_bytes, kernel);
  for (const unsigned flat : turn) {
    if (!runner.RunBlock(Unflatten(flat, grid), impl_->order, impl_->random)) {
      impl_->error = runner.error();
      return;
    }
  }
}

const ThreadIndices& Indices() { return BlockRunner::current().lane().indices; }

int LaneId() { return BlockRunner::current().lane_id(); }

void SyncThreads(const char* file, int line) {
  BlockRunner::current().Wait(State::kAtBarrier, "__syncthreads", file, line);
}

uint64_t Exchange(uint32_t mask, uint64_t value, int source_lane, const char* operation,
                  const char* file, int line) {
  BlockRunner& runner = BlockRunner::current();
  Lane& lane = runner.lane();
  lane.mask = mask;
  lane.value = value;
  lane.source = source_lane & (kWarpLanes - 1);
  runner.Wait(State::kAtWarpOperation, operation, file, line);
  return lane.value;
}

void SyncWarp(uint32_t mask, const char* file, int line) {
  Exchange(mask, 0, LaneId(), "__syncwarp", file, line);
}

uint32_t Ballot(uint32_t mask, bool predicate, const char* file, int line) {
  Exchange(mask, predicate ? 1 : 0, LaneId(), "__ballot_sync", file, line);
  return BlockRunner::current().lane().votes;
}

void* SharedArray(size_t bytes, const char* file, int line) {
  return BlockRunner::current().Shared(bytes, file, line);
}

void* SharedDynamic() { return BlockRunner::current().dynamic_shared(); }

}  // namespace hexad::shim
