#pragma once

// Decides which members of a thread team rest, from how long the caller had to wait for them. Time
// is an argument, so that it can be tested without clocks.
//
// Over a window of a few milliseconds of jobs, the waits beyond what a piece takes are added up,
// each blamed on the member that ended last. Without one of n members a job takes about
// n / (n - 1) times as long; when more than that share of the window was waiting, the most blamed
// member rests. It is tried again after a while, which doubles as long as the trial fails.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hexad {

class LateMembers final {
 public:
  using Nanoseconds = int64_t;

  static constexpr Nanoseconds kWindow = 4'000'000;
  static constexpr Nanoseconds kTrial = 1'500'000;  // the window of a member that comes back
  static constexpr Nanoseconds kShortestRest = 20'000'000;
  static constexpr Nanoseconds kLongestRest = 1'000'000'000;

  // members: with the caller, who is number 0 and never rests.
  explicit LateMembers(int members) : members_(static_cast<size_t>(members)) {}

  // After a job: its length, how long the caller waited for the others at its end, beyond what a
  // piece may take, and whom it waited for. True when a member shall rest from now on: `rested`.
  bool Judge(Nanoseconds now, Nanoseconds length, Nanoseconds late, int last);

  // A member whose rest is over at `now`, or 0. It is taken as active again.
  int Return(Nanoseconds now);

  bool resting(int member) const { return members_[static_cast<size_t>(member)].rests; }
  int rested() const { return rested_; }
  int active() const { return static_cast<int>(members_.size()) - num_resting_; }
  int64_t rests() const { return rests_; }

 private:
  struct Member {
    bool rests = false;
    Nanoseconds until = 0;
    Nanoseconds rest = kShortestRest;  // the next one
    Nanoseconds blame = 0;             // in this window
  };
  void Restart();

  std::vector<Member> members_;
  Nanoseconds length_ = 0, late_ = 0;  // of this window
  Nanoseconds window_ = kWindow;
  int num_resting_ = 0;
  int rested_ = 0;
  int64_t rests_ = 0;
};

}  // namespace hexad
