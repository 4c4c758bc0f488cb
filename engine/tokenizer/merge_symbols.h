#pragma once

// The loop that both kinds of BPE share: join neighbouring symbols, the best pair first, of equal
// pairs the left one, until none can be joined. A heap of candidates and a linked list of symbols:
// O(n log n), also for a megabyte of one letter.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hexad {

struct Symbol {
  uint32_t begin = 0;  // bytes of the text; begin == end: joined into an earlier one
  uint32_t end = 0;
  int32_t id = -1;
  int32_t previous = -1;
  int32_t next = -1;
};

struct Join {
  double priority = 0;  // the smallest goes first
  int32_t id = -1;      // of the joined symbol
};

class SymbolMerger final {
 public:
  std::vector<Symbol>& symbols() { return symbols_; }
  void Clear() { symbols_.clear(); }
  void Append(uint32_t begin, uint32_t end, int32_t id) {
    const auto index = static_cast<int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({begin, end, id, index - 1, -1});
  }

  // `rank(left, right, join)` says whether two neighbours can be joined, and fills `join`.
  template <typename Rank>
  void Run(const Rank& rank) {
    candidates_.clear();
    const auto count = static_cast<int32_t>(symbols_.size());
    for (int32_t i = 0; i + 1 < count; ++i) Consider(rank, i, i + 1);
    std::make_heap(candidates_.begin(), candidates_.end(), Later);
    heaped_ = true;
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), Later);
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      Symbol& left = symbols_[best.left];
      Symbol& right = symbols_[best.right];
      // Stale when either was joined elsewhere since: the left one grows only over the right one.
      if (left.begin == left.end || right.begin == right.end || right.end != best.end) continue;
      left.end = right.end;
      left.id = best.id;
      left.next = right.next;
      right.begin = right.end;
      if (left.next >= 0) {
        symbols_[left.next].previous = best.left;
        Consider(rank, best.left, left.next);
      }
      if (left.previous >= 0) Consider(rank, left.previous, best.left);
    }
    heaped_ = false;
  }

 private:
  struct Candidate {
    double priority;
    int32_t left;
    int32_t right;
    uint32_t end;  // of the right symbol when this was found
    int32_t id;
  };

  static bool Later(const Candidate& a, const Candidate& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.left > b.left;
  }

  template <typename Rank>
  void Consider(const Rank& rank, int32_t left, int32_t right) {
    Join join;
    if (!rank(symbols_[left], symbols_[right], join)) return;
    candidates_.push_back({join.priority, left, right, symbols_[right].end, join.id});
    if (heaped_) std::push_heap(candidates_.begin(), candidates_.end(), Later);
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
  bool heaped_ = false;
};

}  // namespace hexad
