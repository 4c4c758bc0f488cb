#include "kernels/attention_plan.h"

#include <algorithm>
#include <tuple>

namespace hexad {
namespace {

// Rows that share one pass over keys and values; more hardly save anything, and their scores would
// leave the cache. (A query whose heads alone are more is a task all the same.)
constexpr int32_t kTaskRows = 64;
// Tasks a thread: enough to balance disturbances by neighbours, few enough that reading ahead,
// which ends with a task, pays.
constexpr int64_t kTasksPerThread = 4;
// A task's cost in rows beside its rows: reading a segment.
constexpr int64_t kReadingRows = 2;
constexpr int64_t kMaxPartialFloats = int64_t{4} << 20;

class Planner final {
 public:
  Planner(const AttentionPlanInput& input, AttentionPlan& plan)
      : input_(input), plan_(plan), heads_per_kv_(input.heads / input.layout.kv_heads) {}

  // False when its partials would be too many.
  bool Make(bool share, bool split) {
    plan_.pieces.clear();
    plan_.tasks.clear();
    plan_.members.clear();
    plan_.sources.clear();
    plan_.num_slots = 0;
    sources_.clear();
    CutPieces();
    if (share) ShareSegments();
    AddOwnSegments();
    Divide(split);
    const int64_t floats = plan_.num_slots * input_.layout.kv_heads * (input_.layout.head_dim + 8);
    if (floats > kMaxPartialFloats && (share || split)) return false;
    OrderSources();
    return true;
  }

 private:
  using Piece = AttentionPlan::Piece;
  using Task = AttentionPlan::Task;

  struct Source {
    int32_t piece;
    int64_t segment;
    int64_t slot;
  };

  int64_t FirstSegment(const Piece& piece) const {
    if (input_.window == 0) return 0;
    return std::max<int64_t>(0, piece.first_position - input_.window + 1) / kAttentionSegment;
  }
  static int64_t LastSegment(const Piece& piece) {
    return (piece.first_position + piece.queries - 1) / kAttentionSegment + 1;
  }

  void CutPieces() {
    const int32_t most = std::max(1, kTaskRows / heads_per_kv_);
    first_piece_.clear();
    int64_t row = 0;
    for (size_t i = 0; i < input_.sequences.size(); ++i) {
      first_piece_.push_back(static_cast<int32_t>(plan_.pieces.size()));
      const KvSequence& sequence = input_.sequences[i];
      const int32_t count = (sequence.num_rows + most - 1) / most;
      for (int32_t n = 0; n < count; ++n) {  // of sizes that differ by one at most
        const auto begin = static_cast<int32_t>(int64_t{sequence.num_rows} * n / count);
        const auto end = static_cast<int32_t>(int64_t{sequence.num_rows} * (n + 1) / count);
        Piece piece;
        piece.sequence = static_cast<int32_t>(i);
        piece.first_row = row + begin;
        piece.first_position = sequence.first_position + begin;
        piece.queries = end - begin;
        plan_.pieces.push_back(piece);
      }
      row += sequence.num_rows;
    }
    first_piece_.push_back(static_cast<int32_t>(plan_.pieces.size()));
    shared_begin_.assign(input_.sequences.size(), 0);
    shared_end_.assign(input_.sequences.size(), 0);
  }

  void AddTask(std::span<const int32_t> pieces, int64_t first_segment, int64_t last_segment) {
    if (first_segment >= last_segment) return;
    Task task;
    task.first_member = static_cast<int32_t>(plan_.members.size());
    plan_.members.insert(plan_.members.end(), pieces.begin(), pieces.end());
    task.last_member = static_cast<int32_t>(plan_.members.size());
    for (const int32_t piece : pieces) task.rows += plan_.pieces[piece].queries * heads_per_kv_;
    task.first_segment = first_segment;
    task.last_segment = last_segment;
    plan_.tasks.push_back(task);
  }

  void ShareSegments() {
    std::vector<int32_t> together;
    for (const SharedRun& run : FindSharedRuns(input_.sequences, input_.layout.block_tokens,
                                               input_.window, kTaskRows / 2 / heads_per_kv_)) {
      int32_t rows = 0;
      together.clear();
      for (const int32_t sequence : run.sequences) {
        if (shared_end_[sequence] == 0) shared_begin_[sequence] = run.first_segment;
        shared_end_[sequence] = run.last_segment;
        for (int32_t i = first_piece_[sequence]; i < first_piece_[sequence + 1]; ++i) {
          const int32_t more = plan_.pieces[i].queries * heads_per_kv_;
          if (rows + more > kTaskRows) {
            AddTask(together, run.first_segment, run.last_segment);
            together.clear();
            rows = 0;
          }
          together.push_back(i);
          rows += more;
        }
      }
      AddTask(together, run.first_segment, run.last_segment);
    }
  }

  void AddOwnSegments() {
    for (size_t i = 0; i < plan_.pieces.size(); ++i) {
      const auto index = static_cast<int32_t>(i);
      const Piece& piece = plan_.pieces[i];
      const int64_t first = FirstSegment(piece), last = LastSegment(piece);
      if (shared_end_[piece.sequence] == 0) {
        AddTask({&index, 1}, first, last);
      } else {
        AddTask({&index, 1}, first, shared_begin_[piece.sequence]);
        AddTask({&index, 1}, shared_end_[piece.sequence], last);
      }
    }
  }

  int64_t CostOf(const Task& task) const {
    return (task.rows + kReadingRows) * (task.last_segment - task.first_segment);
  }

  // Cuts tasks that are too long for the threads to share the work evenly, and gives out slots.
  void Divide(bool split) {
    int64_t most = INT64_MAX;
    if (split && input_.threads > 1) {
      most = 0;
      for (const Task& task : plan_.tasks) most += CostOf(task) * input_.layout.kv_heads;
      most /= input_.threads * kTasksPerThread;
    }
    std::vector<Task> parts;
    for (const Task& task : plan_.tasks) {
      const int64_t segments = task.last_segment - task.first_segment;
      const int64_t length = std::max<int64_t>(1, most / (task.rows + kReadingRows));
      const int64_t count = (segments + length - 1) / length;
      for (int64_t n = 0; n < count; ++n) {
        Task part = task;
        part.first_segment = task.first_segment + segments * n / count;
        part.last_segment = task.first_segment + segments * (n + 1) / count;
        Place(part);
        parts.push_back(part);
      }
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [&](const Task& a, const Task& b) { return CostOf(a) > CostOf(b); });
    plan_.tasks.swap(parts);
  }

  void Place(Task& part) {
    const std::span<const int32_t> members(plan_.members.data() + part.first_member,
                                           plan_.members.data() + part.last_member);
    part.merged = std::all_of(members.begin(), members.end(), [&](int32_t piece) {
      return FirstSegment(plan_.pieces[piece]) == part.first_segment;
    });
    part.whole = part.merged && members.size() == 1 &&
                 part.last_segment == LastSegment(plan_.pieces[members[0]]);
    if (part.whole) return;
    part.first_slot = plan_.num_slots;
    const int64_t layers = part.merged ? 1 : part.last_segment - part.first_segment;
    for (int64_t n = 0; n < layers; ++n) {
      for (const int32_t piece : members) {
        sources_.push_back({piece, part.first_segment + n, plan_.num_slots});
        plan_.num_slots += int64_t{plan_.pieces[piece].queries} * heads_per_kv_;
      }
    }
  }

  void OrderSources() {
    std::sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) {
      return std::tie(a.piece, a.segment) < std::tie(b.piece, b.segment);
    });
    for (const Source& source : sources_) {
      Piece& piece = plan_.pieces[source.piece];
      if (piece.first_source == piece.last_source) {
        piece.first_source = piece.last_source = static_cast<int32_t>(plan_.sources.size());
      }
      ++piece.last_source;
      plan_.sources.push_back(source.slot);
    }
  }

  const AttentionPlanInput& input_;
  AttentionPlan& plan_;
  const int32_t heads_per_kv_;
  std::vector<int32_t> first_piece_;                // of each sequence, and the end
  std::vector<int64_t> shared_begin_, shared_end_;  // segments of each sequence; end 0: none
  std::vector<Source> sources_;
};

}  // namespace

void PlanAttention(const AttentionPlanInput& input, AttentionPlan& plan) {
  Planner planner(input, plan);
  if (input.share && planner.Make(true, true)) return;
  if (planner.Make(false, true)) return;
  planner.Make(false, false);
}

}  // namespace hexad
