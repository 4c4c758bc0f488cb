#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/attention_kernels.h"
#include "kernels/dequantize.h"

namespace hexad::cpu {
namespace {

constexpr int kSegment = 256;
constexpr int kTileTokens = 16;

// A value of a tile, given its place among the values and among the scales (of 32 values each).
float Load(const AttendTask& task, const uint8_t* tile, int64_t index, int64_t scale_index) {
  if (task.kind == KvKind::kFloat) {
    float value = 0;
    std::memcpy(&value, tile + index * 4, 4);
    return value;
  }
  uint16_t bits = 0;
  if (task.kind == KvKind::kHalf) {
    std::memcpy(&bits, tile + index * 2, 2);
    return HalfToFloat(bits);
  }
  std::memcpy(&bits, tile + int64_t{kTileTokens} * task.head_dim + scale_index * 2, 2);
  return static_cast<int8_t>(tile[index]) * HalfToFloat(bits);
}

int64_t TileOffset(const AttendTask& task, int64_t position) {
  return task.blocks[position / task.block_tokens] * task.block_bytes +
         position % task.block_tokens / kTileTokens * task.tile_bytes;
}

float Score(const AttendTask& task, const float* q, int64_t position) {
  const uint8_t* const tile = task.k + TileOffset(task, position);
  const int64_t token = position % kTileTokens;
  float sum = 0.0f;
  for (int d = 0; d < task.head_dim; ++d) {
    sum += q[d] * Load(task, tile, d * kTileTokens + token, d / 32 * kTileTokens + token);
  }
  sum *= task.scale;
  return task.softcap > 0 ? task.softcap * std::tanh(sum / task.softcap) : sum;
}

// Positions begin..end-1, all in one segment.
void AttendSegment(const AttendTask& task, const float* q, int64_t begin, int64_t end,
                   float* scores, float* partial) {
  float max = -INFINITY, sum = 0.0f;
  for (int64_t p = begin; p < end; ++p) {
    scores[p - begin] = Score(task, q, p);
    max = std::max(max, scores[p - begin]);
  }
  std::fill(partial, partial + task.head_dim, 0.0f);
  for (int64_t p = begin; p < end; ++p) {
    const float weight = std::exp(scores[p - begin] - max);
    sum += weight;
    const uint8_t* const tile = task.v + TileOffset(task, p);
    const int64_t token = p % kTileTokens;
    for (int d = 0; d < task.head_dim; ++d) {
      partial[d] +=
          weight * Load(task, tile, token * task.head_dim + d, d / 32 * kTileTokens + token);
    }
  }
  partial[task.head_dim] = max;
  partial[task.head_dim + 1] = sum;
}

void Merge(float* state, const float* partial, int32_t head_dim) {
  const float old_max = state[head_dim], new_max = partial[head_dim];
  if (new_max == -INFINITY) return;
  if (old_max == -INFINITY) {
    std::copy(partial, partial + head_dim + 2, state);
    return;
  }
  const float max = std::max(old_max, new_max);
  const float keep = std::exp(old_max - max), add = std::exp(new_max - max);
  for (int d = 0; d < head_dim; ++d) state[d] = state[d] * keep + partial[d] * add;
  state[head_dim] = max;
  state[head_dim + 1] = state[head_dim + 1] * keep + partial[head_dim + 1] * add;
}

void AttendRow(const AttendTask& task, const float* q, int64_t position, int row) {
  const int64_t state_floats = task.head_dim + 8;
  const int64_t first = task.window > 0 ? std::max<int64_t>(0, position - task.window + 1) : 0;
  float* const partial = task.scratch + kSegment;
  for (int64_t s = task.first_segment; s < task.last_segment; ++s) {
    const int64_t begin = std::max(first, s * kSegment);
    const int64_t end = std::min(position + 1, (s + 1) * kSegment);
    AttendSegment(task, q, begin, std::max(begin, end), task.scratch, partial);
    const int64_t index = task.merged ? 0 : s - task.first_segment;
    float* const state = task.states + (index * task.rows + row) * state_floats;
    if (task.merged && s > task.first_segment) {
      Merge(state, partial, task.head_dim);
    } else {
      std::copy(partial, partial + task.head_dim + 2, state);
    }
  }
}

void Attend(const AttendTask& task) {
  int row = 0;
  for (int i = 0; i < task.num_pieces; ++i) {
    const AttendPiece& piece = task.pieces[i];
    for (int query = 0; query < piece.queries; ++query) {
      for (int head = 0; head < task.heads_per_kv; ++head, ++row) {
        const float* q = piece.q + query * task.query_stride + int64_t{head} * task.head_dim;
        AttendRow(task, q, piece.first_position + query, row);
      }
    }
  }
}

int64_t ScratchFloats(int32_t rows, int32_t head_dim) {
  (void)rows;
  return kSegment + head_dim + 8;
}

void StoreHalf(const float* values, int32_t count, int32_t stride, uint16_t* out) {
  for (int32_t i = 0; i < count; ++i) {
    out[int64_t{i} * stride] = FloatToHalf(std::clamp(values[i], -65504.0f, 65504.0f));
  }
}

void StoreInt8(const float* values, int32_t stride, int8_t* quants, uint16_t* scale) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
  *scale = FloatToHalf(std::min(largest / 127.0f, 65504.0f));
  const float rounded = HalfToFloat(*scale);
  const float inverse = rounded > 0 ? 1.0f / rounded : 0.0f;
  for (int i = 0; i < 32; ++i) {
    const float scaled = std::clamp(values[i] * inverse, -127.0f, 127.0f);
    quants[int64_t{i} * stride] =
        std::isnan(scaled) ? int8_t{127} : static_cast<int8_t>(std::nearbyint(scaled));
  }
}

}  // namespace

const AttentionKernelSet kPortableAttention = {
    .name = "portable-attention-2",
    .scratch_floats = ScratchFloats,
    .attend = Attend,
    .merge = Merge,
    .store_half = StoreHalf,
    .store_int8 = StoreInt8,
};

}  // namespace hexad::cpu
