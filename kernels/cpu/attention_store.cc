#include <algorithm>
#include <cstring>

#include "kernels/attention.h"
#include "kernels/cpu/attention_kernels.h"

namespace hexad {
namespace {

// One head of one token. k, v: [head_dim]; tiles: of that head and token.
void StoreHead(const KvBlockShape& layout, int token, const float* k, const float* v,
               std::byte* k_tile, std::byte* v_tile) {
  const cpu::AttentionKernelSet& kernels = cpu::AttentionKernels();
  const int64_t head_dim = layout.head_dim;
  if (layout.type == DType::kF16) {
    kernels.store_half(k, layout.head_dim, kKvTile, reinterpret_cast<uint16_t*>(k_tile) + token);
    kernels.store_half(v, layout.head_dim, 1,
                       reinterpret_cast<uint16_t*>(v_tile) + token * head_dim);
    return;
  }
  if (layout.type == DType::kF32) {
    float* const k_out = reinterpret_cast<float*>(k_tile) + token;
    for (int64_t d = 0; d < head_dim; ++d) k_out[d * kKvTile] = k[d];
    std::memcpy(reinterpret_cast<float*>(v_tile) + token * head_dim, v,
                sizeof(float) * static_cast<size_t>(head_dim));
    return;
  }
  auto* const k_quants = reinterpret_cast<int8_t*>(k_tile);
  auto* const v_quants = reinterpret_cast<int8_t*>(v_tile);
  auto* const k_scales = reinterpret_cast<uint16_t*>(k_tile + head_dim * kKvTile);
  auto* const v_scales = reinterpret_cast<uint16_t*>(v_tile + head_dim * kKvTile);
  for (int64_t d = 0; d < head_dim; d += 32) {
    const int64_t scale = d / 32 * kKvTile + token;
    kernels.store_int8(k + d, kKvTile, k_quants + d * kKvTile + token, k_scales + scale);
    kernels.store_int8(v + d, 1, v_quants + token * head_dim + d, v_scales + scale);
  }
}

void StoreRow(const KvPool& pool, uint32_t block, int token, const float* k, const float* v) {
  const KvBlockShape& layout = pool.layout;
  const int64_t head_bytes = layout.BlockBytes() / layout.kv_heads;
  int64_t offset = block * layout.BlockBytes() + token / kKvTile * layout.TileBytes();
  for (int head = 0; head < layout.kv_heads; ++head) {
    StoreHead(layout, token % kKvTile, k, v, pool.k + offset, pool.v + offset);
    k += layout.head_dim;
    v += layout.head_dim;
    offset += head_bytes;
  }
}

}  // namespace

void StoreKvRow(const KvPool& pool, const uint32_t* blocks, int64_t position, const float* k,
                const float* v) {
  const int32_t block_tokens = pool.layout.block_tokens;
  StoreRow(pool, blocks[position / block_tokens], static_cast<int>(position % block_tokens), k, v);
}

void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
             const float* v, ThreadTeam& team) {
  const KvBlockShape& layout = pool.layout;
  const int64_t width = int64_t{layout.kv_heads} * layout.head_dim;
  for (const KvSequence& sequence : sequences) {
    const int64_t grain = std::max<int64_t>(1, 16384 / width);
    team.ParallelFor(sequence.num_rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t position = sequence.first_position + i;
        StoreRow(pool, sequence.blocks[position / layout.block_tokens],
                 static_cast<int>(position % layout.block_tokens), k + i * width, v + i * width);
      }
    });
    k += sequence.num_rows * width;
    v += sequence.num_rows * width;
  }
}

}  // namespace hexad
