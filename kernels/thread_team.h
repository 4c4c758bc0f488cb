#pragma once

// The threads of one CPU executor. A team is owned and called by one thread, which computes along;
// between calls the other members spin for a few microseconds and then sleep, so that an idle or
// waiting team takes nothing from I/O threads. Work is taken in pieces: a member that was slowed
// down by a neighbour, or is still asleep, delays nobody who can do its pieces instead.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace hexad {

class ThreadTeam final {
 public:
  // begin, end: a piece of the items; thread: 0 <= thread < threads(), each value used by one
  // thread at a time (index of per-thread scratch).
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end, int thread)>;

  // threads: members including the caller, at least 1. pin: ties member i >= 1 to the i-th CPU that
  // the process may use (when there are that many); the caller's own affinity is never touched.
  explicit ThreadTeam(int threads, bool pin = false);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body on pieces that cover [0, items) once, and returns when all of them are done. Every
  // piece begins at a multiple of `grain` and holds at most `grain` items (grain >= 1). Which
  // thread takes a piece is open, so what body writes for an item must depend on that item alone;
  // then results do not depend on the number of threads. Body must not throw, block or call the
  // team. Not for concurrent callers.
  void ParallelFor(int64_t items, int64_t grain, Body body);

  // The same with a grain that gives every thread a few pieces.
  void ParallelFor(int64_t items, Body body);

 private:
  void WorkerLoop(int thread);
  void TakePieces(int thread);
  uint64_t AwaitChange(uint64_t seen);
  void AwaitWorkers();

  // One word, so that joining and closing a job cannot race: bits 0..15 members inside the job,
  // bit 16 job open, bits 17.. number of the job.
  std::atomic<uint64_t> state_{0};
  std::atomic<int64_t> next_{0};
  int64_t items_ = 0;
  int64_t grain_ = 1;
  const Body* body_ = nullptr;

  std::mutex mutex_;
  std::condition_variable wake_workers_;
  std::condition_variable wake_caller_;
  std::atomic<int> sleeping_workers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace hexad
