#include "kernels/attention.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/attention_plan.h"
#include "kernels/cpu/attention_kernels.h"

namespace hexad {
namespace {

using Piece = AttentionPlan::Piece;
using Task = AttentionPlan::Task;

int64_t StateFloats(const KvBlockShape& layout) { return layout.head_dim + 8; }

cpu::KvKind KindOf(DType type) {
  switch (type) {
    case DType::kF32:
      return cpu::KvKind::kFloat;
    case DType::kF16:
      return cpu::KvKind::kHalf;
    default:
      return cpu::KvKind::kInt8;
  }
}

// Memory of one thread, grown to the largest call so far.
class Scratch final {
 public:
  float* Floats(int64_t count) {
    constexpr size_t kSpare = 16;  // for alignment to 64 bytes
    const size_t needed = static_cast<size_t>(count) + kSpare;
    if (floats_.size() < needed) floats_.resize(needed);
    const auto address = reinterpret_cast<uintptr_t>(floats_.data());
    return floats_.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  std::vector<cpu::AttendPiece> pieces;

 private:
  std::vector<float> floats_;
};

// One call of Attention.
class Run final {
 public:
  Run(const AttentionArgs& args, const AttentionPlan& plan, float* slots)
      : args_(args),
        plan_(plan),
        layout_(args.pool.layout),
        heads_per_kv_(args.heads / layout_.kv_heads),
        slots_(slots) {}

  void Attend(const Task& task, int32_t kv_head, Scratch& scratch) const {
    const cpu::AttentionKernelSet& kernels = cpu::AttentionKernels();
    cpu::AttendTask kernel_task = MakeTask(task, kv_head, scratch);
    const int64_t own_states = task.whole ? (task.rows * StateFloats(layout_) + 15) / 16 * 16 : 0;
    float* const memory =
        scratch.Floats(own_states + kernels.scratch_floats(task.rows, layout_.head_dim));
    kernel_task.states = task.whole ? memory : Slot(kv_head, task.first_slot);
    kernel_task.scratch = memory + own_states;
    kernels.attend(kernel_task);
    if (task.whole) {
      WriteOut(plan_.pieces[plan_.members[task.first_member]], kv_head, kernel_task.states);
    }
  }

  void MergeSources(const Piece& piece, int32_t kv_head) const {
    const int64_t floats = piece.queries * heads_per_kv_ * StateFloats(layout_);
    float* const total = Slot(kv_head, plan_.sources[piece.first_source]);
    for (int32_t i = piece.first_source + 1; i < piece.last_source; ++i) {
      const float* const partial = Slot(kv_head, plan_.sources[i]);
      for (int64_t at = 0; at < floats; at += StateFloats(layout_)) {
        cpu::AttentionKernels().merge(total + at, partial + at, layout_.head_dim);
      }
    }
    WriteOut(piece, kv_head, total);
  }

 private:
  float* Slot(int32_t kv_head, int64_t slot) const {
    return slots_ + (kv_head * plan_.num_slots + slot) * StateFloats(layout_);
  }

  // All but its memory.
  cpu::AttendTask MakeTask(const Task& task, int32_t kv_head, Scratch& scratch) const {
    cpu::AttendTask result{};
    result.query_stride = int64_t{args_.heads} * layout_.head_dim;
    scratch.pieces.clear();
    for (int32_t i = task.first_member; i < task.last_member; ++i) {
      const Piece& piece = plan_.pieces[plan_.members[i]];
      const float* const q = args_.q + piece.first_row * result.query_stride +
                             int64_t{kv_head} * heads_per_kv_ * layout_.head_dim;
      scratch.pieces.push_back({q, piece.queries, piece.first_position});
    }
    result.pieces = scratch.pieces.data();
    result.num_pieces = static_cast<int32_t>(scratch.pieces.size());
    result.rows = task.rows;
    result.heads_per_kv = heads_per_kv_;
    const Piece& first = plan_.pieces[plan_.members[task.first_member]];
    result.blocks = args_.sequences[first.sequence].blocks;
    result.block_bytes = layout_.BlockBytes();
    result.tile_bytes = layout_.TileBytes();
    const int64_t head_offset = kv_head * (result.block_bytes / layout_.kv_heads);
    result.k = reinterpret_cast<const uint8_t*>(args_.pool.k) + head_offset;
    result.v = reinterpret_cast<const uint8_t*>(args_.pool.v) + head_offset;
    result.block_tokens = layout_.block_tokens;
    result.head_dim = layout_.head_dim;
    result.kind = KindOf(layout_.type);
    result.scale = args_.scale;
    result.softcap = args_.softcap;
    result.window = args_.window;
    result.first_segment = task.first_segment;
    result.last_segment = task.last_segment;
    result.merged = task.merged;
    return result;
  }

  // acc / sum of every row, to its place in out.
  void WriteOut(const Piece& piece, int32_t kv_head, const float* states) const {
    for (int64_t query = 0; query < piece.queries; ++query) {
      float* out =
          args_.out + ((piece.first_row + query) * args_.heads + int64_t{kv_head} * heads_per_kv_) *
                          layout_.head_dim;
      for (int32_t head = 0; head < heads_per_kv_; ++head) {
        const float sum = states[layout_.head_dim + 1];
        for (int32_t d = 0; d < layout_.head_dim; ++d) out[d] = states[d] / sum;
        out += layout_.head_dim;
        states += StateFloats(layout_);
      }
    }
  }

  const AttentionArgs& args_;
  const AttentionPlan& plan_;
  const KvBlockShape& layout_;
  const int32_t heads_per_kv_;
  float* const slots_;
};

void RunPlan(const AttentionArgs& args, const AttentionPlan& plan, ThreadTeam& team) {
  const int64_t kv_heads = args.pool.layout.kv_heads;
  thread_local Scratch slots;
  const Run run(args, plan,
                slots.Floats(plan.num_slots * kv_heads * StateFloats(args.pool.layout)));
  const auto tasks = static_cast<int64_t>(plan.tasks.size());
  team.ParallelFor(tasks * kv_heads, 1, [&](int64_t begin, int64_t end, int) {
    thread_local Scratch scratch;
    for (int64_t i = begin; i < end; ++i) {
      run.Attend(plan.tasks[i / kv_heads], static_cast<int32_t>(i % kv_heads), scratch);
    }
  });
  if (plan.sources.empty()) return;
  const auto pieces = static_cast<int64_t>(plan.pieces.size());
  team.ParallelFor(pieces * kv_heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = plan.pieces[i / kv_heads];
      if (piece.first_source < piece.last_source) {
        run.MergeSources(piece, static_cast<int32_t>(i % kv_heads));
      }
    }
  });
}

}  // namespace

bool KvBlockShape::Valid() const {
  const bool type_fits =
      type == DType::kF32 || type == DType::kF16 || (type == DType::kQ8_0 && head_dim % 32 == 0);
  return type_fits && kv_heads > 0 && head_dim > 0 && head_dim <= 512 && head_dim % 8 == 0 &&
         block_tokens > 0 && block_tokens % kKvTile == 0;
}

void Attention(const AttentionArgs& args, ThreadTeam& team) {
  if (args.plan != nullptr) return RunPlan(args, *args.plan, team);
  AttentionPlan plan;
  PlanAttention({args.sequences, args.pool.layout, args.heads, args.window, team.threads()}, plan);
  RunPlan(args, plan, team);
}

}  // namespace hexad
