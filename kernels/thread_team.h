#pragma once

// The threads of one CPU executor. A team is owned and called by one thread, which computes along;
// between calls the other members spin for a few microseconds and then sleep, so that an idle or
// waiting team takes nothing from I/O threads. Every member has a run of adjacent pieces of its own
// (which memory streams like) and, when those are done, takes pieces from the others': a member
// that was slowed down by a neighbour, or is still asleep, delays nobody who can do its pieces
// instead.
//
// What that cannot help against is a member that loses its CPU while it holds a piece: everybody
// waits for a time slice. When such waits eat up what the member brings, it rests: the team goes on
// without it, and tries it again after a while, later each time. See late_members.h.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/aligned.h"
#include "kernels/late_members.h"

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

  // Of the calling thread: jobs that were handed to other members so far, and members that rest.
  struct Counters {
    int64_t hand_overs = 0;
    int64_t rests = 0;
    int resting = 0;
  };
  Counters counters() const;

 private:
  using Clock = std::chrono::steady_clock;

  // One cache line: written by whoever takes pieces of this member's run.
  struct alignas(kCacheLine) Member {
    std::atomic<int64_t> next{0};  // piece
    int64_t end = 0;               // of the run; written between jobs
    std::atomic<bool> resting{false};
    std::atomic<bool> asleep{false};
    std::condition_variable wake;
  };

  void WorkerLoop(int thread);
  // Returns the pieces that were taken.
  int64_t TakePieces(int thread);
  int64_t TakeRun(Member& run, int thread);
  uint64_t AwaitChange(int thread, uint64_t seen);
  void AwaitWorkers();
  void HandOut(int64_t pieces);
  void WakeSleepers();
  // After a job that `begun` and whose caller was through with `pieces` pieces at `through`.
  void Judge(Clock::time_point begun, Clock::time_point through, int64_t pieces);

  // One word, so that joining and closing a job cannot race: bits 0..15 members inside the job,
  // bit 16 job open, bits 17.. number of the job.
  alignas(kCacheLine) std::atomic<uint64_t> state_{0};
  std::atomic<int> last_{0};  // who left the job last, when the caller waits
  alignas(kCacheLine) int64_t items_ = 0;
  int64_t grain_ = 1;
  const Body* body_ = nullptr;
  const std::unique_ptr<Member[]> members_;  // [threads]; 0: the caller

  std::mutex mutex_;
  std::condition_variable wake_caller_;
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  LateMembers late_;  // of the caller, as the counters
  int64_t hand_overs_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace hexad
