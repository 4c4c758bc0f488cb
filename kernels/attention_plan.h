#pragma once

// How the work of Attention is divided for one step and KV group: a pure function of the step's
// sequences and their block tables, made once and used by every layer of the group. No choice made
// here changes a bit of the result.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"

namespace hexad {

struct AttentionPlanInput {
  std::span<const KvSequence> sequences;
  KvBlockShape layout;
  int32_t heads = 0;
  int32_t window = 0;
  int32_t threads = 1;
  bool share = true;  // false: every sequence reads its own keys and values
};

// "Rows" of a piece or task are queries times heads of one KV head. Every task is done for each KV
// head. A slot holds the partial, or merged partials, of one row and KV head.
struct AttentionPlan {
  // Consecutive queries of one sequence.
  struct Piece {
    int32_t sequence = 0;
    int64_t first_row = 0;  // in q
    int64_t first_position = 0;
    int32_t queries = 0;
    int32_t first_source = 0;  // merged from sources[first_source, last_source), if any
    int32_t last_source = 0;
  };
  // Pieces members[first_member, last_member) times segments [first_segment, last_segment), read
  // through the block table of the first of them.
  struct Task {
    int32_t first_member = 0;
    int32_t last_member = 0;
    int32_t rows = 0;
    int64_t first_segment = 0;
    int64_t last_segment = 0;
    // All that its pieces see: the result is theirs. Else its slots begin at first_slot: with
    // `merged` one for each row, otherwise for each segment one for each row.
    bool whole = false;
    bool merged = false;
    int64_t first_slot = 0;
  };

  std::vector<Piece> pieces;
  std::vector<Task> tasks;       // costliest first
  std::vector<int32_t> members;  // indices of pieces
  std::vector<int64_t> sources;  // slots of the first row of a piece, ascending in positions
  int64_t num_slots = 0;
};

// `plan` is overwritten; its memory is used again.
void PlanAttention(const AttentionPlanInput& input, AttentionPlan& plan);

// Segments [first_segment, last_segment) that lie in the same blocks for all of two or more
// sequences, whose queries all see all of them. Ascending in segments for every sequence.
struct SharedRun {
  std::vector<int32_t> sequences;  // ascending
  int64_t first_segment = 0;
  int64_t last_segment = 0;

  friend bool operator==(const SharedRun&, const SharedRun&) = default;
};

// Considers sequences of at most max_rows rows. A sequence that shares with nobody for a segment is
// left out from there on.
std::vector<SharedRun> FindSharedRuns(std::span<const KvSequence> sequences, int32_t block_tokens,
                                      int32_t window, int32_t max_rows);

}  // namespace hexad
