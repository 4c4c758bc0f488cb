// Attention for AVX2, FMA and F16C. See matmul_avx2.cc for what may be included here.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

constexpr int kSegment = 256;
constexpr int kTile = 16;
constexpr int kTiles = kSegment / kTile;
constexpr int kMaxChainRows = 6;
const float kMinusInfinity = -__builtin_inff();

// The part of one segment that any row of the task sees.
struct Segment {
  int64_t start;  // position of its first token
  int begin;      // first and last + 1 token seen, within the segment
  int end;
  const uint8_t* k[kTiles];  // tiles begin / 16 .. (end - 1) / 16
  const uint8_t* v[kTiles];
};

int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// First position that the query at `position` sees.
int64_t FirstVisible(const AttendTask& task, int64_t position) {
  return task.window > 0 ? Max(0, position - task.window + 1) : 0;
}

// False when no row sees anything of it.
bool FindSegment(const AttendTask& task, int64_t index, Segment& segment) {
  segment.start = index * kSegment;
  const int64_t last = task.first_position + task.queries;
  segment.begin = static_cast<int>(Max(0, FirstVisible(task, task.first_position) - segment.start));
  segment.end = static_cast<int>(Min(kSegment, last - segment.start));
  if (segment.begin >= segment.end) return false;
  const int64_t tile_bytes = int64_t{task.head_dim} * kTile * (task.half ? 2 : 4);
  for (int tile = segment.begin / kTile; tile * kTile < segment.end; ++tile) {
    const int64_t position = segment.start + tile * kTile;
    const int64_t offset = int64_t{task.blocks[position / task.block_tokens]} * task.block_bytes +
                           position % task.block_tokens / kTile * tile_bytes;
    segment.k[tile] = task.k + offset;
    segment.v[tile] = task.v + offset;
  }
  return true;
}

const float* QueryRow(const AttendTask& task, int row) {
  return task.q + int64_t{row / task.heads_per_kv} * task.query_stride +
         int64_t{row % task.heads_per_kv} * task.head_dim;
}

template <bool kHalf>
__m256 LoadValues(const uint8_t* values, int64_t index) {
  if constexpr (kHalf) return LoadHalves(values + index * 2);
  return _mm256_loadu_ps(reinterpret_cast<const float*>(values) + index);
}

// ---- Scores: lanes are keys, the chain runs over the head's dimensions. ------------------------

template <bool kHalf, int kRows>
void ScoreRows(const AttendTask& task, const uint8_t* keys, int row, float* scores) {
  const float* q[kRows];
  __m256 chain[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    q[r] = QueryRow(task, row + r);
    chain[r][0] = chain[r][1] = _mm256_setzero_ps();
  }
  for (int d = 0; d < task.head_dim; ++d) {
    const __m256 k0 = LoadValues<kHalf>(keys, d * kTile);
    const __m256 k1 = LoadValues<kHalf>(keys, d * kTile + 8);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 qd = _mm256_broadcast_ss(q[r] + d);
      chain[r][0] = _mm256_fmadd_ps(qd, k0, chain[r][0]);
      chain[r][1] = _mm256_fmadd_ps(qd, k1, chain[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(scores + r * kSegment, chain[r][0]);
    _mm256_storeu_ps(scores + r * kSegment + 8, chain[r][1]);
  }
}

template <bool kHalf>
void ScoreTile(const AttendTask& task, const uint8_t* keys, int rows, float* scores) {
  int r = 0;
  for (; r + kMaxChainRows <= rows; r += kMaxChainRows) {
    ScoreRows<kHalf, kMaxChainRows>(task, keys, r, scores + r * kSegment);
  }
  scores += r * kSegment;
  switch (rows - r) {
    case 5:
      return ScoreRows<kHalf, 5>(task, keys, r, scores);
    case 4:
      return ScoreRows<kHalf, 4>(task, keys, r, scores);
    case 3:
      return ScoreRows<kHalf, 3>(task, keys, r, scores);
    case 2:
      return ScoreRows<kHalf, 2>(task, keys, r, scores);
    case 1:
      return ScoreRows<kHalf, 1>(task, keys, r, scores);
    default:
      return;
  }
}

// The keys of a tile as floats, once for many rows.
const uint8_t* WidenKeys(const AttendTask& task, const uint8_t* keys, float* out) {
  for (int i = 0; i < task.head_dim * kTile; i += 8) {
    _mm256_storeu_ps(out + i, LoadHalves(keys + i * 2));
  }
  return reinterpret_cast<const uint8_t*>(out);
}

void ScoreSegment(const AttendTask& task, const Segment& segment, int rows, float* scores,
                  float* wide_keys) {
  const bool widen = task.half && rows > kMaxChainRows;
  for (int tile = segment.begin / kTile; tile * kTile < segment.end; ++tile) {
    float* out = scores + tile * kTile;
    const uint8_t* keys = segment.k[tile];
    if (widen) keys = WidenKeys(task, keys, wide_keys);
    if (task.half && !widen) {
      ScoreTile<true>(task, keys, rows, out);
    } else {
      ScoreTile<false>(task, keys, rows, out);
    }
  }
}

// ---- Weights of one row: scale, cap, mask, exp.
// --------------------------------------------------

// scores: of the segment. The row sees tokens begin..end-1 of it; all others get weight zero.
// Leaves max and sum in partial. Vectors and lanes are those of the segment, so that sums do not
// depend on what else the task sees.
void WeighRow(const AttendTask& task, const Segment& segment, int begin, int end, float* scores,
              float* max_and_sum) {
  const int first = segment.begin / 8 * 8, last = (segment.end + 7) / 8 * 8;
  const __m256 scale = _mm256_set1_ps(task.scale);
  const __m256 cap = _mm256_set1_ps(task.softcap);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256 max = _mm256_set1_ps(kMinusInfinity);
  for (int i = first; i < last; i += 8) {
    __m256 score = _mm256_mul_ps(_mm256_loadu_ps(scores + i), scale);
    if (task.softcap > 0) score = _mm256_mul_ps(cap, Tanh(_mm256_div_ps(score, cap)));
    if (i < begin || i + 8 > end) {
      const __m256i token = _mm256_add_epi32(lanes, _mm256_set1_epi32(i));
      const __m256i hidden = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), token),
                                             _mm256_cmpgt_epi32(token, _mm256_set1_epi32(end - 1)));
      score = _mm256_blendv_ps(score, _mm256_set1_ps(kMinusInfinity), _mm256_castsi256_ps(hidden));
    }
    _mm256_storeu_ps(scores + i, score);
    max = _mm256_max_ps(max, score);
  }
  const float row_max = MaxLanes(max);
  __m256 sum = _mm256_setzero_ps();
  for (int i = first; i < last; i += 8) {
    // A row that sees nothing here has no maximum; its weights are zero all the same.
    const __m256 weight =
        begin < end ? Exp(_mm256_sub_ps(_mm256_loadu_ps(scores + i), _mm256_set1_ps(row_max)))
                    : _mm256_setzero_ps();
    _mm256_storeu_ps(scores + i, weight);
    sum = _mm256_add_ps(sum, weight);
  }
  max_and_sum[0] = begin < end ? row_max : kMinusInfinity;
  max_and_sum[1] = SumLanes(sum);
}

// ---- Sums of values: lanes are dimensions, the chain runs over the tokens. ----------------------

template <bool kHalf, int kRows, int kVectors>
void MixRows(const AttendTask& task, const Segment& segment, const float* weights, int dimension,
             float* out) {
  __m256 chain[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) chain[r][n] = _mm256_setzero_ps();
  }
  for (int token = segment.begin; token < segment.end;) {
    const int tile = token / kTile;
    const int tile_end = (tile + 1) * kTile < segment.end ? (tile + 1) * kTile : segment.end;
    int64_t index = int64_t{token % kTile} * task.head_dim + dimension;
    for (; token < tile_end; ++token, index += task.head_dim) {
      __m256 v[kVectors];
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) v[n] = LoadValues<kHalf>(segment.v[tile], index + n * 8);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m256 weight = _mm256_broadcast_ss(weights + r * kSegment + token);
#pragma GCC unroll 4
        for (int n = 0; n < kVectors; ++n) {
          chain[r][n] = _mm256_fmadd_ps(weight, v[n], chain[r][n]);
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      _mm256_storeu_ps(out + int64_t{r} * (task.head_dim + 8) + dimension + n * 8, chain[r][n]);
    }
  }
}

template <bool kHalf, int kRows>
void MixDimensions(const AttendTask& task, const Segment& segment, const float* weights,
                   float* out) {
  constexpr int kVectors = kRows <= 3 ? 4 : 2;
  int d = 0;
  for (; d + kVectors * 8 <= task.head_dim; d += kVectors * 8) {
    MixRows<kHalf, kRows, kVectors>(task, segment, weights, d, out);
  }
  for (; d < task.head_dim; d += 8) MixRows<kHalf, kRows, 1>(task, segment, weights, d, out);
}

template <bool kHalf>
void MixSegment(const AttendTask& task, const Segment& segment, int rows, const float* weights,
                float* out) {
  const int64_t state_floats = task.head_dim + 8;
  int r = 0;
  for (; r + kMaxChainRows <= rows; r += kMaxChainRows) {
    MixDimensions<kHalf, kMaxChainRows>(task, segment, weights + r * kSegment,
                                        out + r * state_floats);
  }
  weights += r * kSegment;
  out += r * state_floats;
  switch (rows - r) {
    case 5:
      return MixDimensions<kHalf, 5>(task, segment, weights, out);
    case 4:
      return MixDimensions<kHalf, 4>(task, segment, weights, out);
    case 3:
      return MixDimensions<kHalf, 3>(task, segment, weights, out);
    case 2:
      return MixDimensions<kHalf, 2>(task, segment, weights, out);
    case 1:
      return MixDimensions<kHalf, 1>(task, segment, weights, out);
    default:
      return;
  }
}

}  // namespace

void Avx2Attend(const AttendTask& task) {
  const int rows = task.queries * task.heads_per_kv;
  const int64_t state_floats = task.head_dim + 8;
  float* const scores = task.scratch;
  float* const partial = scores + int64_t{rows} * kSegment;
  float* const wide_keys = partial + rows * state_floats;
  for (int64_t s = task.first_segment; s < task.last_segment; ++s) {
    Segment segment;
    if (!FindSegment(task, s, segment)) continue;
    ScoreSegment(task, segment, rows, scores, wide_keys);
    for (int r = 0; r < rows; ++r) {
      const int64_t position = task.first_position + r / task.heads_per_kv;
      const int64_t begin = Max(0, FirstVisible(task, position) - segment.start);
      const int64_t end = Min(kSegment, position + 1 - segment.start);
      WeighRow(task, segment, static_cast<int>(Min(begin, kSegment)), static_cast<int>(Max(end, 0)),
               scores + int64_t{r} * kSegment, partial + r * state_floats + task.head_dim);
    }
    if (task.half) {
      MixSegment<true>(task, segment, rows, scores, partial);
    } else {
      MixSegment<false>(task, segment, rows, scores, partial);
    }
    for (int r = 0; r < rows; ++r) {
      Avx2Merge(task.state + r * state_floats, partial + r * state_floats, task.head_dim);
    }
  }
}

void Avx2Merge(float* state, const float* partial, int32_t head_dim) {
  const float old_max = state[head_dim], new_max = partial[head_dim];
  if (new_max == kMinusInfinity) return;
  const bool empty = old_max == kMinusInfinity;
  const float max = old_max > new_max ? old_max : new_max;
  const __m256 keep = Exp(_mm256_set1_ps(old_max - max));
  const __m256 add = Exp(_mm256_set1_ps(new_max - max));
  for (int d = 0; d < head_dim; d += 8) {
    const __m256 p = _mm256_loadu_ps(partial + d);
    const __m256 merged = _mm256_fmadd_ps(p, add, _mm256_mul_ps(_mm256_loadu_ps(state + d), keep));
    _mm256_storeu_ps(state + d, empty ? p : merged);
  }
  const float sum = partial[head_dim + 1];
  const float merged =
      __builtin_fmaf(sum, _mm256_cvtss_f32(add), state[head_dim + 1] * _mm256_cvtss_f32(keep));
  state[head_dim] = max;
  state[head_dim + 1] = empty ? sum : merged;
}

void Avx2StoreHalf(const float* values, int32_t count, int32_t stride, uint16_t* out) {
  for (int32_t i = 0; i < count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (stride == 1) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
      continue;
    }
    alignas(16) uint16_t lanes[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(lanes), halves);
    for (int lane = 0; lane < 8; ++lane) out[int64_t{i + lane} * stride] = lanes[lane];
  }
}

}  // namespace hexad::cpu
