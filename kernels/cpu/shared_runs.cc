#include <algorithm>
#include <cstring>

#include "kernels/attention_plan.h"

namespace hexad {
namespace {

// Segments that every query of a sequence sees all of.
struct FullSegments {
  int64_t first;
  int64_t last;
};

FullSegments FullSegmentsOf(const KvSequence& sequence, int32_t window) {
  const int64_t last_query = sequence.first_position + sequence.num_rows - 1;
  const int64_t first_seen = window > 0 ? std::max<int64_t>(0, last_query - window + 1) : 0;
  return {(first_seen + kAttentionSegment - 1) / kAttentionSegment,
          (sequence.first_position + 1) / kAttentionSegment};
}

// The table entries of one segment.
class SegmentEntries final {
 public:
  SegmentEntries(std::span<const KvSequence> sequences, int64_t segment, int32_t block_tokens)
      : sequences_(sequences),
        first_(segment * kAttentionSegment / block_tokens),
        last_(((segment + 1) * kAttentionSegment - 1) / block_tokens + 1) {}

  int Compare(int32_t a, int32_t b) const {
    const uint32_t* const of_a = sequences_[a].blocks;
    const uint32_t* const of_b = sequences_[b].blocks;
    return std::memcmp(of_a + first_, of_b + first_,
                       static_cast<size_t>(last_ - first_) * sizeof(uint32_t));
  }
  bool Less(int32_t a, int32_t b) const {
    const int order = Compare(a, b);
    return order != 0 ? order < 0 : a < b;
  }

 private:
  std::span<const KvSequence> sequences_;
  int64_t first_;
  int64_t last_;
};

// Continues the run of these sequences when they were together in the segment before, else opens
// one. run_of: of each sequence the last run it was in, or -1.
void AddToRuns(std::span<const int32_t> together, int64_t segment, std::vector<int32_t>& run_of,
               std::vector<SharedRun>& runs) {
  const int32_t open = run_of[together.front()];
  if (open >= 0 && runs[open].last_segment == segment &&
      std::equal(together.begin(), together.end(), runs[open].sequences.begin(),
                 runs[open].sequences.end())) {
    ++runs[open].last_segment;
    return;
  }
  for (const int32_t sequence : together) run_of[sequence] = static_cast<int32_t>(runs.size());
  runs.push_back({{together.begin(), together.end()}, segment, segment + 1});
}

}  // namespace

std::vector<SharedRun> FindSharedRuns(std::span<const KvSequence> sequences, int32_t block_tokens,
                                      int32_t window, int32_t max_rows) {
  std::vector<SharedRun> runs;
  std::vector<int32_t> alive, here;
  int64_t segment = INT64_MAX, end = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].num_rows < 1 || sequences[i].num_rows > max_rows) continue;
    const FullSegments full = FullSegmentsOf(sequences[i], window);
    if (full.first >= full.last) continue;
    alive.push_back(static_cast<int32_t>(i));
    segment = std::min(segment, full.first);
    end = std::max(end, full.last);
  }
  std::vector<int32_t> run_of(sequences.size(), -1);
  std::vector<bool> alone(sequences.size(), false);
  for (; segment < end && alive.size() > 1; ++segment) {
    here.clear();
    for (const int32_t sequence : alive) {
      const FullSegments full = FullSegmentsOf(sequences[sequence], window);
      if (full.first <= segment && segment < full.last) here.push_back(sequence);
      if (full.last <= segment) alone[sequence] = true;
    }
    const SegmentEntries entries(sequences, segment, block_tokens);
    std::sort(here.begin(), here.end(), [&](int32_t a, int32_t b) { return entries.Less(a, b); });
    for (size_t i = 0, next = 0; i < here.size(); i = next) {
      for (next = i + 1; next < here.size() && entries.Compare(here[i], here[next]) == 0;) ++next;
      if (next - i == 1) {
        alone[here[i]] = true;
      } else {
        AddToRuns(std::span(here).subspan(i, next - i), segment, run_of, runs);
      }
    }
    std::erase_if(alive, [&](int32_t sequence) { return alone[sequence]; });
  }
  return runs;
}

}  // namespace hexad
