#include "kernels/late_members.h"

#include <algorithm>

namespace hexad {

bool LateMembers::Judge(Nanoseconds now, Nanoseconds length, Nanoseconds late, int last) {
  length_ += length;
  // One that rests may still have joined a job that began as it was told, and is not told twice.
  if (late > 0 && last > 0 && !resting(last)) {
    late_ += late;
    members_[static_cast<size_t>(last)].blame += late;
  }
  if (length_ < window_) return false;
  // One in `active` would be lost without the member; a sixth is what any shared machine loses.
  const bool worth = late_ > std::max(length_ / (active() + 1), length_ / 6);
  const auto by_blame = [](const Member& a, const Member& b) { return a.blame < b.blame; };
  const auto worst = std::max_element(members_.begin(), members_.end(), by_blame);
  if (worth) {
    worst->rests = true;
    worst->until = now + worst->rest;
    worst->rest = std::min(2 * worst->rest, kLongestRest);
    rested_ = static_cast<int>(worst - members_.begin());
    ++num_resting_;
    ++rests_;
  } else {
    for (Member& member : members_) {
      if (!member.rests) member.rest = std::max(member.rest / 2, kShortestRest);
    }
  }
  Restart();
  return worth;
}

int LateMembers::Return(Nanoseconds now) {
  if (num_resting_ == 0) return 0;
  for (size_t i = 1; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.rests || now < member.until) continue;
    member.rests = false;
    --num_resting_;
    Restart();
    window_ = kTrial;
    return static_cast<int>(i);
  }
  return 0;
}

void LateMembers::Restart() {
  length_ = late_ = 0;
  window_ = kWindow;
  for (Member& member : members_) member.blame = 0;
}

}  // namespace hexad
