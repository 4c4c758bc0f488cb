#include "kernels/layer_ops.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/kernel_set.h"

namespace hexad {
namespace {

// Values that are worth a hand-over to another thread: some microseconds.
constexpr int64_t kGrainValues = 8192;

int64_t RowGrain(int64_t values) {
  return std::max<int64_t>(1, kGrainValues / std::max<int64_t>(1, values));
}

void Norm(const NormWeights& norm, const float* x, int64_t dim, float* out) {
  cpu::Kernels().rms_norm(x, norm.weight, norm.offset, norm.epsilon, dim, out);
}

void PositionRow(const PositionArgs& args, const HeadArgs& part, int64_t row) {
  if (part.values == nullptr) return;
  const int64_t width = int64_t{part.heads} * args.head_dim;
  const float* const cosines = args.table + row * 2 * args.pairs;
  float* const values = part.values + row * width;
  if (part.bias != nullptr) cpu::Kernels().add(values, part.bias, width);
  for (float* head = values; head < values + width; head += args.head_dim) {
    if (part.norm.weight != nullptr) Norm(part.norm, head, args.head_dim, head);
    cpu::Kernels().rotate(cosines, cosines + args.pairs, args.pairs,
                          args.rope == RopeKind::kInterleaved, head);
  }
}

// Where a row lies: its sequence, and how many of that come before it.
struct Place {
  const KvSequence* sequence;
  int64_t index;

  void Settle() {
    for (; index >= sequence->num_rows; ++sequence) index -= sequence->num_rows;
  }
};

}  // namespace

void AddAndNorm(const AddAndNormArgs& args, MatMulInput& out, ThreadTeam& team) {
  const int64_t dim = out.dim();
  team.ParallelFor(args.rows, RowGrain(dim), [&](int64_t begin, int64_t end, int) {
    thread_local std::vector<float> normed;
    if (normed.size() < static_cast<size_t>(dim)) normed.resize(static_cast<size_t>(dim));
    for (int64_t row = begin; row < end; ++row) {
      float* const x = args.x + row * dim;
      if (args.h != nullptr) {
        float* const h = args.h + row * dim;
        if (args.post_norm.weight != nullptr) Norm(args.post_norm, h, dim, h);
        cpu::Kernels().add(x, h, dim);
      }
      Norm(args.norm, x, dim, normed.data());
      out.PutRow(normed.data(), row);
    }
  });
}

void PositionAndStore(const PositionArgs& args, ThreadTeam& team) {
  const int64_t kv_width = int64_t{args.key.heads} * args.head_dim;
  const int64_t width = int64_t{args.query.heads} * args.head_dim + 2 * kv_width;
  team.ParallelFor(args.rows, RowGrain(width), [&](int64_t begin, int64_t end, int) {
    Place place{args.sequences.data(), begin};
    for (int64_t row = begin; row < end; ++row, ++place.index) {
      PositionRow(args, args.query, row);
      if (args.key.values == nullptr) continue;
      PositionRow(args, args.key, row);
      float* const value = args.value + row * kv_width;
      if (args.value_bias != nullptr) cpu::Kernels().add(value, args.value_bias, kv_width);
      place.Settle();
      StoreKvRow(args.pool, place.sequence->blocks, place.sequence->first_position + place.index,
                 args.key.values + row * kv_width, value);
    }
  });
}

}  // namespace hexad
