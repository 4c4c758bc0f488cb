#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/portable.h"
#include "kernels/dequantize.h"

namespace hexad::cpu {
namespace {

constexpr int kSegment = 256;
constexpr int kTileTokens = 16;

float Load(const AttendTask& task, const uint8_t* values, int64_t index) {
  if (!task.half) {
    float value;
    std::memcpy(&value, values + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, values + index * 2, 2);
  return HalfToFloat(bits);
}

float Score(const AttendTask& task, const float* q, int64_t position) {
  const int64_t block = task.blocks[position / task.block_tokens];
  const int64_t token = position % task.block_tokens;
  const uint8_t* k = task.k + block * task.block_bytes;
  const int64_t tile = token / kTileTokens * task.head_dim * kTileTokens + token % kTileTokens;
  float sum = 0.0f;
  for (int d = 0; d < task.head_dim; ++d) sum += q[d] * Load(task, k, tile + d * kTileTokens);
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
    const int64_t block = task.blocks[p / task.block_tokens];
    const uint8_t* v = task.v + block * task.block_bytes;
    const int64_t row = p % task.block_tokens * task.head_dim;
    for (int d = 0; d < task.head_dim; ++d) partial[d] += weight * Load(task, v, row + d);
  }
  partial[task.head_dim] = max;
  partial[task.head_dim + 1] = sum;
}

}  // namespace

void PortableAttend(const AttendTask& task) {
  const int state_floats = task.head_dim + 8;
  for (int r = 0; r < task.queries * task.heads_per_kv; ++r) {
    const int query = r / task.heads_per_kv;
    const float* q =
        task.q + query * task.query_stride + int64_t{r % task.heads_per_kv} * task.head_dim;
    const int64_t position = task.first_position + query;
    const int64_t first = task.window > 0 ? std::max<int64_t>(0, position - task.window + 1) : 0;
    for (int64_t s = task.first_segment; s < task.last_segment; ++s) {
      const int64_t begin = std::max(first, s * kSegment);
      const int64_t end = std::min(position + 1, (s + 1) * kSegment);
      if (begin >= end) continue;
      AttendSegment(task, q, begin, end, task.scratch, task.scratch + kSegment);
      PortableMerge(task.state + int64_t{r} * state_floats, task.scratch + kSegment, task.head_dim);
    }
  }
}

void PortableMerge(float* state, const float* partial, int32_t head_dim) {
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

}  // namespace hexad::cpu
