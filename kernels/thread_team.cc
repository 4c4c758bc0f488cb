#include "kernels/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hexad {
namespace {

constexpr uint64_t kMembers = 0xffff;
constexpr uint64_t kOpen = uint64_t{1} << 16;
constexpr uint64_t kJob = uint64_t{1} << 17;

// About 20 microseconds: longer than the gap between two products of a layer, shorter than anything
// an I/O thread would notice.
constexpr int kSpins = 1000;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

void PinToAllowedCpu(std::thread& worker, int index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    // Refusal costs speed only.
    (void)pthread_setaffinity_np(worker.native_handle(), sizeof(one), &one);
    return;
  }
}

int MembersOf(int threads) { return std::clamp(threads, 1, 1024); }

int64_t Nanoseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

}  // namespace

ThreadTeam::ThreadTeam(int threads, bool pin)
    : members_(std::make_unique<Member[]>(static_cast<size_t>(MembersOf(threads)))),
      late_(MembersOf(threads)) {
  const int workers = MembersOf(threads) - 1;
  workers_.reserve(static_cast<size_t>(workers));
  for (int i = 1; i <= workers; ++i) {
    workers_.emplace_back([this, i] { WorkerLoop(i); });
    if (pin) PinToAllowedCpu(workers_.back(), i);
  }
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  for (int i = 1; i < threads(); ++i) members_[i].wake.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

ThreadTeam::Counters ThreadTeam::counters() const {
  return {hand_overs_, late_.rests(), threads() - late_.active()};
}

void ThreadTeam::ParallelFor(int64_t items, Body body) {
  const int64_t pieces = int64_t{8} * threads();
  ParallelFor(items, std::max<int64_t>(1, items / pieces), body);
}

void ThreadTeam::ParallelFor(int64_t items, int64_t grain, Body body) {
  if (items <= 0) return;
  grain = std::max<int64_t>(1, grain);
  Clock::time_point begun;
  bool alone = workers_.empty() || items <= grain;
  if (!alone) {
    begun = Clock::now();
    const int back = late_.Return(Nanoseconds(begun.time_since_epoch()));
    if (back > 0) members_[back].resting.store(false);
    alone = late_.active() == 1;
  }
  if (alone) {
    for (int64_t begin = 0; begin < items; begin += grain) {
      body(begin, std::min(items, begin + grain), 0);
    }
    return;
  }
  ++hand_overs_;
  items_ = items;
  grain_ = grain;
  body_ = &body;
  HandOut((items + grain - 1) / grain);
  // The job is closed and empty, so this thread alone writes the word.
  state_.store((state_.load(std::memory_order_relaxed) & ~kMembers) + kJob + kOpen);
  WakeSleepers();
  const int64_t taken = TakePieces(0);
  const Clock::time_point through = Clock::now();
  state_.fetch_sub(kOpen);  // who has not joined yet has nothing left to do
  AwaitWorkers();
  Judge(begun, through, taken);
}

void ThreadTeam::HandOut(int64_t pieces) {
  const int64_t active = late_.active();
  int64_t given = 0;
  for (int i = 0; i < threads(); ++i) {
    const bool rests = late_.resting(i);
    const int64_t first = pieces * given / active;
    if (!rests) ++given;
    members_[i].end = rests ? first : pieces * given / active;
    members_[i].next.store(first, std::memory_order_relaxed);
  }
}

void ThreadTeam::WakeSleepers() {
  for (int i = 1; i < threads(); ++i) {
    Member& member = members_[i];
    if (!member.asleep.load() || member.resting.load(std::memory_order_relaxed)) continue;
    { std::lock_guard<std::mutex> lock(mutex_); }
    member.wake.notify_one();
  }
}

void ThreadTeam::Judge(Clock::time_point begun, Clock::time_point through, int64_t pieces) {
  const Clock::time_point now = Clock::now();
  // Pieces are of about one size, and the last to end may have begun when the caller was through.
  const int64_t piece = pieces == 0 ? 0 : Nanoseconds(through - begun) / pieces;
  const int64_t late = pieces == 0 ? 0 : Nanoseconds(now - through) - 2 * piece;
  const int64_t when = Nanoseconds(now.time_since_epoch());
  const int last = last_.load(std::memory_order_relaxed);
  if (late_.Judge(when, Nanoseconds(now - begun), late, last)) {
    members_[late_.rested()].resting.store(true);
  }
}

int64_t ThreadTeam::TakePieces(int thread) {
  int64_t taken = TakeRun(members_[thread], thread);
  for (int i = 1; i < threads(); ++i) taken += TakeRun(members_[(thread + i) % threads()], thread);
  return taken;
}

int64_t ThreadTeam::TakeRun(Member& run, int thread) {
  for (int64_t taken = 0;; ++taken) {
    if (run.next.load(std::memory_order_relaxed) >= run.end) return taken;
    const int64_t piece = run.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= run.end) return taken;
    (*body_)(piece * grain_, std::min(items_, (piece + 1) * grain_), thread);
  }
}

void ThreadTeam::WorkerLoop(int thread) {
  uint64_t seen = 0;  // number of the last job that this worker looked at
  for (;;) {
    uint64_t state = AwaitChange(thread, seen);
    if (stop_.load()) return;
    seen = state / kJob;
    bool joined = false;
    while ((state & kOpen) != 0 && state / kJob == seen && !joined) {
      joined = state_.compare_exchange_weak(state, state + 1);
    }
    if (!joined) continue;
    TakePieces(thread);
    last_.store(thread, std::memory_order_relaxed);
    const uint64_t left = state_.fetch_sub(1) - 1;
    if ((left & (kMembers | kOpen)) == 0 && caller_sleeps_.load()) {
      { std::lock_guard<std::mutex> lock(mutex_); }
      wake_caller_.notify_one();
    }
  }
}

uint64_t ThreadTeam::AwaitChange(int thread, uint64_t seen) {
  Member& self = members_[thread];
  for (int i = 0; i < kSpins && !self.resting.load(std::memory_order_relaxed); ++i) {
    const uint64_t state = state_.load();
    if (state / kJob != seen || stop_.load(std::memory_order_relaxed)) return state;
    Pause();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  // Announced before the state is read again; the caller writes the state before it looks here.
  self.asleep.store(true);
  self.wake.wait(
      lock, [&] { return stop_.load() || (!self.resting.load() && state_.load() / kJob != seen); });
  self.asleep.store(false);
  return state_.load();
}

void ThreadTeam::AwaitWorkers() {
  for (int i = 0; i < kSpins; ++i) {
    if ((state_.load() & kMembers) == 0) return;
    Pause();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  caller_sleeps_.store(true);
  wake_caller_.wait(lock, [&] { return (state_.load() & kMembers) == 0; });
  caller_sleeps_.store(false);
}

}  // namespace hexad
