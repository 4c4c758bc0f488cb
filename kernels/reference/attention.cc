#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/reference/reference.h"

namespace hexad::reference {
namespace {

// Where a value lies: its tile, its place among the values of the tile, and for Q8_0 that of its
// scale among the scales.
struct Place {
  std::byte* tile;
  int64_t value;
  int64_t scale;
};

Place PlaceOf(const KvBlockShape& layout, std::byte* pool, uint32_t block, int token, int kv_head,
              int dimension, bool transposed) {
  const int64_t tiles = layout.block_tokens / kKvTile;
  const int64_t tile = (int64_t{block} * layout.kv_heads + kv_head) * tiles + token / kKvTile;
  const int64_t in_tile = token % kKvTile;
  return {pool + tile * layout.TileBytes(),
          transposed ? dimension * kKvTile + in_tile : in_tile * layout.head_dim + dimension,
          dimension / 32 * kKvTile + in_tile};
}

std::byte* ScaleAt(const KvBlockShape& layout, const Place& place) {
  return place.tile + layout.head_dim * kKvTile + place.scale * 2;
}

float Get(const KvBlockShape& layout, const Place& place) {
  if (layout.type == DType::kQ8_0) {
    uint16_t scale;
    std::memcpy(&scale, ScaleAt(layout, place), 2);
    return static_cast<int8_t>(place.tile[place.value]) * HalfToFloat(scale);
  }
  float value;
  DequantizeRow(layout.type, place.tile + RowBytes(layout.type, place.value), 1, &value);
  return value;
}

// The scale of the 32 dimensions of a token that x belongs to, of which `values` are all.
uint16_t ScaleOf(const float* values) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
  return FloatToHalf(std::min(largest / 127.0f, 65504.0f));
}

// values: [head_dim] of one token and head, of which dimension d is stored.
void Put(const KvBlockShape& layout, const Place& place, const float* values, int d) {
  if (layout.type == DType::kF32) {
    std::memcpy(place.tile + place.value * 4, values + d, 4);
  } else if (layout.type == DType::kF16) {
    const uint16_t half = FloatToHalf(std::clamp(values[d], -65504.0f, 65504.0f));
    std::memcpy(place.tile + place.value * 2, &half, 2);
  } else {
    const uint16_t scale = ScaleOf(values + d / 32 * 32);
    std::memcpy(ScaleAt(layout, place), &scale, 2);
    const float step = HalfToFloat(scale);
    const float quant = step > 0 ? values[d] * (1.0f / step) : 0.0f;
    place.tile[place.value] = static_cast<std::byte>(
        static_cast<int8_t>(std::nearbyint(std::clamp(quant, -127.0f, 127.0f))));
  }
}

// One query of one head.
void Attend(const AttentionArgs& args, const KvSequence& sequence, int64_t position, int kv_head,
            const float* q, float* out) {
  const KvBlockShape& layout = args.pool.layout;
  const int64_t first = args.window > 0 ? std::max<int64_t>(0, position - args.window + 1) : 0;
  std::vector<double> weights;
  double largest = -INFINITY;
  for (int64_t p = first; p <= position; ++p) {
    const uint32_t block = sequence.blocks[p / layout.block_tokens];
    double score = 0;
    for (int d = 0; d < layout.head_dim; ++d) {
      score += double{q[d]} * double{LoadK(args.pool, block,
                                           static_cast<int>(p % layout.block_tokens), kv_head, d)};
    }
    score *= double{args.scale};
    if (args.softcap > 0) score = args.softcap * std::tanh(score / args.softcap);
    weights.push_back(score);
    largest = std::max(largest, score);
  }
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  std::vector<double> result(static_cast<size_t>(layout.head_dim), 0.0);
  for (int64_t p = first; p <= position; ++p) {
    const uint32_t block = sequence.blocks[p / layout.block_tokens];
    for (int d = 0; d < layout.head_dim; ++d) {
      result[d] +=
          weights[p - first] *
          double{LoadV(args.pool, block, static_cast<int>(p % layout.block_tokens), kv_head, d)};
    }
  }
  for (int d = 0; d < layout.head_dim; ++d) out[d] = static_cast<float>(result[d] / sum);
}

}  // namespace

float LoadK(const KvPool& pool, uint32_t block, int token, int kv_head, int dimension) {
  return Get(pool.layout, PlaceOf(pool.layout, pool.k, block, token, kv_head, dimension, true));
}

float LoadV(const KvPool& pool, uint32_t block, int token, int kv_head, int dimension) {
  return Get(pool.layout, PlaceOf(pool.layout, pool.v, block, token, kv_head, dimension, false));
}

void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
             const float* v) {
  const KvBlockShape& layout = pool.layout;
  for (const KvSequence& sequence : sequences) {
    for (int32_t row = 0; row < sequence.num_rows; ++row) {
      const int64_t position = sequence.first_position + row;
      const uint32_t block = sequence.blocks[position / layout.block_tokens];
      const int token = static_cast<int>(position % layout.block_tokens);
      for (int head = 0; head < layout.kv_heads; ++head) {
        for (int d = 0; d < layout.head_dim; ++d) {
          Put(layout, PlaceOf(layout, pool.k, block, token, head, d, true), k, d);
          Put(layout, PlaceOf(layout, pool.v, block, token, head, d, false), v, d);
        }
        k += layout.head_dim;
        v += layout.head_dim;
      }
    }
  }
}

void Attention(const AttentionArgs& args) {
  const KvBlockShape& layout = args.pool.layout;
  const int heads_per_kv = args.heads / layout.kv_heads;
  int64_t row = 0;
  for (const KvSequence& sequence : args.sequences) {
    for (int32_t i = 0; i < sequence.num_rows; ++i, ++row) {
      for (int head = 0; head < args.heads; ++head) {
        const int64_t offset = (row * args.heads + head) * layout.head_dim;
        Attend(args, sequence, sequence.first_position + i, head / heads_per_kv, args.q + offset,
               args.out + offset);
      }
    }
  }
}

}  // namespace hexad::reference
