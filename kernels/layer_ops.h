#pragma once

// What a transformer layer does to its rows between two products, fused: one pass takes a row
// through all of it while it is in the cache, and puts it down as the next product's input. Few
// rows stay on the calling thread, for which a hand-over would cost more than it brings. The bits
// are those of the ops in elementwise.h and attention.h, one after another.

#include <cstdint>
#include <span>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul_input.h"
#include "kernels/thread_team.h"

namespace hexad {

struct NormWeights {
  const float* weight = nullptr;  // [dim]; null: no norm
  float offset = 0.0f;            // as in RmsNorm
  float epsilon = 0.0f;
};

// x += h; out = norm(x), the seam between a product that ends in the residual and the next one.
struct AddAndNormArgs {
  float* x = nullptr;     // [rows, dim]
  float* h = nullptr;     // [rows, dim]; null: nothing to add
  NormWeights post_norm;  // of h, in place, before it is added; mostly none
  NormWeights norm;       // must be given
  int64_t rows = 0;
};
// out: Reset for these rows; its dim is that of x.
void AddAndNorm(const AddAndNormArgs& args, MatMulInput& out, ThreadTeam& team);

// The way of queries, keys and values from their product to attention: bias, norm a head, RoPE, and
// into the cache.
struct HeadArgs {
  float* values = nullptr;  // [rows, heads, head_dim], in place; null: not there
  int32_t heads = 0;
  const float* bias = nullptr;  // [heads, head_dim]; null: none
  NormWeights norm;             // of each head
};
struct PositionArgs {
  HeadArgs query, key;
  float* value = nullptr;             // [rows, kv_heads, head_dim]; with key
  const float* value_bias = nullptr;  // null: none
  int64_t rows = 0;
  int32_t head_dim = 0;
  RopeKind rope = RopeKind::kInterleaved;
  const float* table = nullptr;  // see RopeTable: [rows, 2, pairs]
  int64_t pairs = 0;
  KvPool pool;                            // where keys and values go
  std::span<const KvSequence> sequences;  // of the rows, as in StoreKv
};
void PositionAndStore(const PositionArgs& args, ThreadTeam& team);

}  // namespace hexad
