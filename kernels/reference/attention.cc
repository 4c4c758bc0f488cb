#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/reference/reference.h"

namespace hexad::reference {
namespace {

// Index of a value in the pool of K or of V, in values.
int64_t IndexK(const KvBlockShape& layout, uint32_t block, int token, int kv_head, int dimension) {
  const int64_t tiles = layout.block_tokens / kKvTile;
  const int64_t tile = (int64_t{block} * layout.kv_heads + kv_head) * tiles + token / kKvTile;
  return (tile * layout.head_dim + dimension) * kKvTile + token % kKvTile;
}

int64_t IndexV(const KvBlockShape& layout, uint32_t block, int token, int kv_head, int dimension) {
  const int64_t row = (int64_t{block} * layout.kv_heads + kv_head) * layout.block_tokens + token;
  return row * layout.head_dim + dimension;
}

void Put(DType type, std::byte* pool, int64_t index, float value) {
  if (type == DType::kF32) {
    std::memcpy(pool + index * 4, &value, 4);
  } else {
    const uint16_t half = FloatToHalf(value);
    std::memcpy(pool + index * 2, &half, 2);
  }
}

float Get(DType type, const std::byte* pool, int64_t index) {
  float value;
  DequantizeRow(type, pool + RowBytes(type, index), 1, &value);
  return value;
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
  return Get(pool.layout.type, pool.k, IndexK(pool.layout, block, token, kv_head, dimension));
}

float LoadV(const KvPool& pool, uint32_t block, int token, int kv_head, int dimension) {
  return Get(pool.layout.type, pool.v, IndexV(pool.layout, block, token, kv_head, dimension));
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
          Put(layout.type, pool.k, IndexK(layout, block, token, head, d), *k++);
          Put(layout.type, pool.v, IndexV(layout, block, token, head, d), *v++);
        }
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
