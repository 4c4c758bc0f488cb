#pragma once

// Causal attention over a paged KV pool, prefill and decode alike.
//
// Numerics. Keys are taken in segments of kAttentionSegment positions from position 0 of the
// sequence. A segment gives a partial (max, sum of exp, sum of exp * v); partials are merged in
// ascending order. So the bits of an output row depend on its query, on the keys and values it sees
// and on nothing else: not on chunking, batch, block size, threads or shared prefixes. Queries read
// the keys of their own chunk back from the cache, in cache precision: StoreKv comes first.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/thread_team.h"
#include "kernels/types.h"

namespace hexad {

inline constexpr int32_t kAttentionSegment = 256;
inline constexpr int32_t kKvTile = 16;  // tokens; blocks are multiples of it

// One layer's blocks, for K or for V; a block holds block_tokens consecutive positions.
//   K  [block][kv_head][tile][head_dim][16]   16 tokens a tile, transposed: one load, one
//                                             dimension of 8 keys
//   V  [block][kv_head][token][head_dim]
// so that 16 tokens of one head are contiguous in both, whatever the block size.
// (Called KvBlockShape, since hexad::KvLayout of kvcache/core names the groups of a whole model.)
struct KvBlockShape {
  DType type = DType::kF16;  // kF32 or kF16
  int32_t kv_heads = 0;
  int32_t head_dim = 0;      // multiple of 8, at most 512
  int32_t block_tokens = 0;  // multiple of kKvTile

  bool Valid() const;
  // Of K, and the same again of V.
  int64_t BlockBytes() const { return RowBytes(type, int64_t{kv_heads} * head_dim) * block_tokens; }
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

// k, v: [rows, kv_heads, head_dim]. Converts to the cache's precision (round to nearest even) and
// writes positions first_position .. first_position + num_rows - 1 of each sequence. No two
// sequences may write the same block.
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
};

void Attention(const AttentionArgs& args, ThreadTeam& team);

}  // namespace hexad
