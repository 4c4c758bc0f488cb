#pragma once

// Notices that the engine has not finished a step for too long.
//
// A value machine; `now` is an argument. Time in which nobody could look does not count: after a
// suspended laptop or a stopped process wakes, the step gets its whole time again.

#include <algorithm>

#include "absl/time/time.h"

namespace hexad {

class StepWatch final {
 public:
  explicit StepWatch(absl::Duration limit) : limit_(limit) {}

  // A step was submitted.
  void Started(absl::Time now) { since_ = std::min(since_, now); }
  // A step ended; others may be in flight.
  void Ended(absl::Time now, int32_t steps_in_flight) {
    since_ = steps_in_flight > 0 ? now : absl::InfiniteFuture();
  }

  // When to call IsStuck at the latest.
  absl::Time NextWake() const {
    return since_ == absl::InfiniteFuture() ? since_ : since_ + limit_;
  }
  bool IsStuck(absl::Time now) {
    const absl::Time due = NextWake();
    if (now < due) return false;
    if (now < due + kLate) return true;
    since_ = now;
    return false;
  }

 private:
  // An owner that wakes this much after NextWake() was not able to run.
  static constexpr absl::Duration kLate = absl::Seconds(20);

  absl::Duration limit_;
  absl::Time since_ = absl::InfiniteFuture();
};

}  // namespace hexad
