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

}  // namespace

ThreadTeam::ThreadTeam(int threads, bool pin) {
  const int workers = std::clamp(threads, 1, 1024) - 1;
  workers_.reserve(workers);
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
  wake_workers_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::ParallelFor(int64_t items, Body body) {
  const int64_t pieces = int64_t{8} * threads();
  ParallelFor(items, std::max<int64_t>(1, items / pieces), body);
}

void ThreadTeam::ParallelFor(int64_t items, int64_t grain, Body body) {
  if (items <= 0) return;
  grain = std::max<int64_t>(1, grain);
  if (workers_.empty() || items <= grain) {
    for (int64_t begin = 0; begin < items; begin += grain) {
      body(begin, std::min(items, begin + grain), 0);
    }
    return;
  }
  items_ = items;
  grain_ = grain;
  body_ = &body;
  next_.store(0, std::memory_order_relaxed);
  // The job is closed and empty, so this thread alone writes the word.
  state_.store((state_.load(std::memory_order_relaxed) & ~kMembers) + kJob + kOpen);
  if (sleeping_workers_.load() > 0) {
    { std::lock_guard<std::mutex> lock(mutex_); }
    wake_workers_.notify_all();
  }
  TakePieces(0);
  state_.fetch_sub(kOpen);  // who has not joined yet has nothing left to do
  AwaitWorkers();
}

void ThreadTeam::TakePieces(int thread) {
  for (;;) {
    const int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
    if (begin >= items_) return;
    (*body_)(begin, std::min(items_, begin + grain_), thread);
  }
}

void ThreadTeam::WorkerLoop(int thread) {
  uint64_t seen = 0;  // number of the last job that this worker looked at
  for (;;) {
    uint64_t state = AwaitChange(seen);
    if (stop_.load()) return;
    seen = state / kJob;
    bool joined = false;
    while ((state & kOpen) != 0 && state / kJob == seen && !joined) {
      joined = state_.compare_exchange_weak(state, state + 1);
    }
    if (!joined) continue;
    TakePieces(thread);
    const uint64_t left = state_.fetch_sub(1) - 1;
    if ((left & (kMembers | kOpen)) == 0 && caller_sleeps_.load()) {
      { std::lock_guard<std::mutex> lock(mutex_); }
      wake_caller_.notify_one();
    }
  }
}

uint64_t ThreadTeam::AwaitChange(uint64_t seen) {
  for (int i = 0; i < kSpins; ++i) {
    const uint64_t state = state_.load();
    if (state / kJob != seen || stop_.load(std::memory_order_relaxed)) return state;
    Pause();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  // Announced before the state is read again; the caller writes the state before it looks here.
  sleeping_workers_.fetch_add(1);
  wake_workers_.wait(lock, [&] { return state_.load() / kJob != seen || stop_.load(); });
  sleeping_workers_.fetch_sub(1);
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
