#pragma once

// Causal attention over a paged KV pool, prefill and decode alike.
//
// Numerics. Keys are taken in segments of kAttentionSegment positions from position 0 of the
// sequence. A segment gives a partial (max, sum of exp, sum of exp * v); partials are merged in
// ascending order. So the bits of an output row depend on its query, on the keys and values it sees
// and on nothing else: not on chunking, batch, block size, threads or shared prefixes. Queries read
// the keys of their own chunk back from the cache, in cache precision: StoreKv comes first.
//
// How a step's work is divided, and which sequences read a segment together because it lies in the
// same blocks for all of them (cascade attention, as in FlashInfer, Ye et al. 2025), is decided by
// PlanAttention, once for all layers of a KV group; see attention_plan.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/thread_team.h"
#include "kernels/types.h"

namespace hexad {

struct AttentionPlan;

inline constexpr int32_t kAttentionSegment = 256;
inline constexpr int32_t kKvTile = 16;  // tokens; blocks are multiples of it

// One layer's blocks, for K or for V; a block holds block_tokens consecutive positions.
//   K  [block][kv_head][tile][head_dim][16]   16 tokens a tile, transposed: one load, one
//                                             dimension of 8 keys
//   V  [block][kv_head][tile][16][head_dim]
// so that 16 tokens of one head are contiguous in both, whatever the block size. kQ8_0: int8 in
// that order, and behind each tile's [head_dim / 32][16] half scales, of 32 dimensions of a token
// each. A value is quant * scale, exactly.
// (Called KvBlockShape, since hexad::KvLayout of kvcache/core names the groups of a whole model.)
struct KvBlockShape {
  DType type = DType::kF16;  // kF32, kF16 or kQ8_0
  int32_t kv_heads = 0;
  int32_t head_dim = 0;      // multiple of 8, with kQ8_0 of 32; at most 512
  int32_t block_tokens = 0;  // multiple of kKvTile

  bool Valid() const;
  // Of K, and the same again of V.
  int64_t TileBytes() const { return RowBytes(type, int64_t{kKvTile} * head_dim); }
  int64_t BlockBytes() const { return TileBytes() * (block_tokens / kKvTile) * kv_heads; }
};

// k, v: base addresses of the layer's pools, 32-byte aligned; block b begins at b * BlockBytes().
struct KvPool {
  KvBlockShape layout;
  std::byte* k = nullptr;
  std::byte* v = nullptr;
};

// Consecutive positions of one sequence: new tokens of StoreKv, queries of Attention. Rows of q, k,
// v and out follow the order of the sequences: num_rows of the first, then those of the second...
struct KvSequence {
  // The block of position p is blocks[p / block_tokens]. Entries are read only for positions that
  // are written or visible, so those left of the window may hold anything.
  const uint32_t* blocks = nullptr;
  int64_t first_position = 0;
  int32_t num_rows = 0;
};

// k, v: [rows, kv_heads, head_dim]. Converts to the cache's precision and writes positions
// first_position .. first_position + num_rows - 1 of each sequence. No two sequences may write the
// same block. F16 rounds to nearest even and takes what is too large as its largest number, so
// that a weight of zero always silences a value. Q8_0: scale = half(max |x| / 127), quant = x *
// (1 / scale) to nearest even.
void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
             const float* v, ThreadTeam& team);

// One position of one sequence, on the calling thread; k, v: [kv_heads, head_dim].
void StoreKvRow(const KvPool& pool, const uint32_t* blocks, int64_t position, const float* k,
                const float* v);

struct AttentionArgs {
  const float* q = nullptr;  // [rows, heads, head_dim]
  float* out = nullptr;      // [rows, heads, head_dim]; may be q
  int32_t heads = 0;         // multiple of kv_heads; head h reads KV head h / (heads / kv_heads)
  KvPool pool;
  std::span<const KvSequence> sequences;
  float scale = 1.0f;    // of q.k, mostly 1 / sqrt(head_dim)
  float softcap = 0.0f;  // > 0: scores become softcap * tanh(score / softcap), after scale
  int32_t window = 0;    // > 0: key j is visible to query i iff i - window < j <= i; 0: j <= i
  // Made for these sequences, heads, window and layout, but any layer; nullptr: made by the call.
  const AttentionPlan* plan = nullptr;
};

void Attention(const AttentionArgs& args, ThreadTeam& team);

// Names the arithmetic of this process' attention: equal names, equal bits.
std::string_view AttentionKernelsName();

}  // namespace hexad
