// Attention for AVX2, FMA and F16C. See matmul_avx2.cc for what may be included here.
//
// Scores are kept in units of the binary logarithm, so that 2^x does for e^x: the queries are
// multiplied by log2(e) and the scale beforehand.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/attention_products_avx2.h"
#include "kernels/cpu/avx2_vector.h"

namespace hexad::cpu {
namespace {

constexpr float kLog2E = 1.44269504088896341f;
const float kMinusInfinity = -__builtin_inff();

int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// First position that the query at `position` sees.
int64_t FirstVisible(const AttendTask& task, int64_t position) {
  return task.window > 0 ? Max(0, position - task.window + 1) : 0;
}

void FindSegment(const AttendTask& task, int64_t index, Segment& segment) {
  segment.start = index * kSegment;
  int64_t begin = kSegment, end = 0;
  for (int i = 0; i < task.num_pieces; ++i) {
    const AttendPiece& piece = task.pieces[i];
    begin = Min(begin, FirstVisible(task, piece.first_position) - segment.start);
    end = Max(end, piece.first_position + piece.queries - segment.start);
  }
  segment.begin = static_cast<int>(Max(0, begin));
  segment.end = static_cast<int>(Min(kSegment, end));
  for (int tile = segment.begin / kTile; tile * kTile < segment.end; ++tile) {
    const int64_t position = segment.start + tile * kTile;
    const int64_t offset = int64_t{task.blocks[position / task.block_tokens]} * task.block_bytes +
                           position % task.block_tokens / kTile * task.tile_bytes;
    segment.k[tile] = task.k + offset;
    segment.v[tile] = task.v + offset;
  }
}

// The rows of q one after another, in units of the scores' logarithm.
void CopyQueries(const AttendTask& task, float* out) {
  const float factor = task.softcap > 0 ? task.scale / task.softcap : task.scale * kLog2E;
  const int values = task.heads_per_kv * task.head_dim;
  for (int i = 0; i < task.num_pieces; ++i) {
    const float* q = task.pieces[i].q;
    for (int query = 0; query < task.pieces[i].queries; ++query, q += task.query_stride) {
      for (int d = 0; d < values; d += 8) {
        _mm256_storeu_ps(out + d, _mm256_mul_ps(_mm256_loadu_ps(q + d), _mm256_set1_ps(factor)));
      }
      out += values;
    }
  }
}

void PrefetchTile(const uint8_t* tile, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(tile) + i, _MM_HINT_T0);
  }
}

// cold: no keys of it have been fetched.
template <KvKind kKind>
void ScoreSegment(const AttendTask& task, const Segment& segment, bool cold, const float* q,
                  float* scores) {
  const int last = (segment.end + kTile - 1) / kTile;
  for (int tile = segment.begin / kTile; tile < last; tile += 2) {
    const int count = tile + 2 <= last ? 2 : 1;
    if (cold) {
      for (int t = tile + 2; t < tile + 4 && t < last; ++t) {
        PrefetchTile(segment.k[t], task.tile_bytes);
      }
    }
    ScoreTiles<kKind>(q, task.rows, task.head_dim, segment.k + tile, count, segment.v + tile,
                      task.tile_bytes, scores + tile * kTile);
  }
}

// 2^x for x <= 0, within 2 units in the last place; 0 below -125 (minus infinity too), NaN for NaN.
// The polynomial is minimax in relative error on [-1/2, 1/2].
__m256 Exp2(__m256 x) {
  const __m256 low = _mm256_set1_ps(-125.0f), magic = _mm256_set1_ps(0x1.8p23f);
  const __m256 clamped = _mm256_max_ps(low, x);
  const __m256 rounded = _mm256_add_ps(clamped, magic);
  const __m256 r = _mm256_sub_ps(clamped, _mm256_sub_ps(rounded, magic));
  __m256 p = _mm256_set1_ps(0x1.5bba14p-10f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.3cea88p-7f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.c6b752p-5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.ebf9bcp-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.62e42ap-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
  const __m256 result = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
  return _mm256_and_ps(result, _mm256_cmp_ps(x, low, _CMP_NLT_UQ));
}

// All ones in the lanes of tokens i..i+7 that lie in begin..end-1.
__m256 Visible(int i, int begin, int end) {
  const __m256i token =
      _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(i));
  return _mm256_castsi256_ps(
      _mm256_and_si256(_mm256_cmpgt_epi32(token, _mm256_set1_epi32(begin - 1)),
                       _mm256_cmpgt_epi32(_mm256_set1_epi32(end), token)));
}

// scores: of the segment, to become weights. The row sees tokens begin..end-1 of it; the others get
// weight zero. Vectors and lanes are those of the segment, so that sums do not depend on what else
// the task sees.
void WeighRow(const Segment& segment, float softcap, int begin, int end, float* scores,
              float* max_and_sum) {
  const int first = segment.begin / 8 * 8, last = (segment.end + 7) / 8 * 8;
  if (begin >= end) {
    for (int i = first; i < last; i += 8) _mm256_storeu_ps(scores + i, _mm256_setzero_ps());
    max_and_sum[0] = kMinusInfinity;
    max_and_sum[1] = 0.0f;
    return;
  }
  __m256 max = _mm256_set1_ps(kMinusInfinity);
  for (int i = first; i < last; i += 8) {
    __m256 score = _mm256_loadu_ps(scores + i);
    if (softcap > 0) score = _mm256_mul_ps(_mm256_set1_ps(softcap * kLog2E), Tanh(score));
    if (i < begin || i + 8 > end) {
      score = _mm256_blendv_ps(_mm256_set1_ps(kMinusInfinity), score, Visible(i, begin, end));
    }
    _mm256_storeu_ps(scores + i, score);
    max = _mm256_max_ps(max, score);
  }
  const float row_max = MaxLanes(max);
  const __m256 most = _mm256_set1_ps(row_max);
  __m256 sum = _mm256_setzero_ps();
  for (int i = first; i < last; i += 8) {
    const __m256 weight = Exp2(_mm256_sub_ps(_mm256_loadu_ps(scores + i), most));
    _mm256_storeu_ps(scores + i, weight);
    sum = _mm256_add_ps(sum, weight);
  }
  max_and_sum[0] = row_max;
  max_and_sum[1] = SumLanes(sum);
}

void WeighRows(const AttendTask& task, const Segment& segment, float* scores, float* partial) {
  const int64_t state_floats = task.head_dim + 8;
  for (int i = 0; i < task.num_pieces; ++i) {
    const AttendPiece& piece = task.pieces[i];
    for (int query = 0; query < piece.queries; ++query) {
      const int64_t position = piece.first_position + query;
      const int64_t begin = Max(0, FirstVisible(task, position) - segment.start);
      const int64_t end = Min(kSegment, position + 1 - segment.start);
      for (int head = 0; head < task.heads_per_kv; ++head) {
        WeighRow(segment, task.softcap, static_cast<int>(Min(begin, kSegment)),
                 static_cast<int>(Max(end, 0)), scores, partial + task.head_dim);
        scores += kSegment;
        partial += state_floats;
      }
    }
  }
}

template <KvKind kKind>
void AttendSegments(const AttendTask& task) {
  const int64_t state_floats = task.head_dim + 8;
  float* const q = task.scratch;
  float* const scores = q + int64_t{task.rows} * task.head_dim;
  float* const scaled = scores + int64_t{task.rows} * kSegment;
  float* const partial = scaled + kMostRows * kSegment;
  CopyQueries(task, q);
  Segment segment, next;
  FindSegment(task, task.first_segment, segment);
  for (int64_t s = task.first_segment; s < task.last_segment; ++s) {
    const int64_t index = s - task.first_segment;
    float* out = task.states;
    if (!task.merged) out += index * task.rows * state_floats;
    if (task.merged && index > 0) out = partial;
    ScoreSegment<kKind>(task, segment, index == 0, q, scores);
    WeighRows(task, segment, scores, out);
    const bool more = s + 1 < task.last_segment;
    if (more) FindSegment(task, s + 1, next);
    // Inner segments are complete, and the first and last may lack tiles that the next one has.
    const bool fetch = more && segment.end == kSegment && next.begin == 0;
    if (fetch) {
      for (int tile = (next.end + kTile - 1) / kTile; tile < kTiles; ++tile) {
        next.k[tile] = next.k[0];
      }
    }
    MixSegment<kKind>(segment, task.rows, scores, task.head_dim, fetch ? next.k : nullptr,
                      task.tile_bytes, scaled, out, state_floats);
    if (out == partial) {
      for (int r = 0; r < task.rows; ++r) {
        Avx2Merge(task.states + r * state_floats, partial + r * state_floats, task.head_dim);
      }
    }
    if (more) segment = next;
  }
}

}  // namespace

int64_t Avx2AttendScratch(int32_t rows, int32_t head_dim) {
  return int64_t{rows} * (head_dim + kSegment + head_dim + 8) + kMostRows * kSegment;
}

void Avx2Attend(const AttendTask& task) {
  switch (task.kind) {
    case KvKind::kFloat:
      return AttendSegments<KvKind::kFloat>(task);
    case KvKind::kHalf:
      return AttendSegments<KvKind::kHalf>(task);
    case KvKind::kInt8:
      return AttendSegments<KvKind::kInt8>(task);
  }
}

void Avx2Merge(float* state, const float* partial, int32_t head_dim) {
  const float old_max = state[head_dim], new_max = partial[head_dim];
  if (new_max == kMinusInfinity) return;
  const bool empty = old_max == kMinusInfinity;
  const float max = old_max > new_max ? old_max : new_max;
  const __m256 keep = Exp2(_mm256_set1_ps(old_max - max));
  const __m256 add = Exp2(_mm256_set1_ps(new_max - max));
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
  const __m256 most = _mm256_set1_ps(65504.0f), least = _mm256_set1_ps(-65504.0f);
  for (int32_t i = 0; i < count; i += 8) {
    // Of two operands the second is the result where one is NaN.
    const __m256 value = _mm256_max_ps(least, _mm256_min_ps(most, _mm256_loadu_ps(values + i)));
    const __m128i halves = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (stride == 1) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
      continue;
    }
    alignas(16) uint16_t lanes[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(lanes), halves);
    for (int lane = 0; lane < 8; ++lane) out[int64_t{i + lane} * stride] = lanes[lane];
  }
}

void Avx2StoreInt8(const float* values, int32_t stride, int8_t* quants, uint16_t* scale) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 largest = _mm256_setzero_ps();
  for (int i = 0; i < 32; i += 8) {
    largest = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(values + i)), largest);
  }
  const __m128 exact = _mm_min_ss(_mm_set_ss(MaxLanes(largest) / 127.0f), _mm_set_ss(65504.0f));
  const __m128i half = _mm_cvtps_ph(exact, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  *scale = static_cast<uint16_t>(_mm_cvtsi128_si32(half));
  const float rounded = _mm_cvtss_f32(_mm_cvtph_ps(half));
  const __m256 inverse = _mm256_set1_ps(rounded > 0 ? 1.0f / rounded : 0.0f);
  const __m256 most = _mm256_set1_ps(127.0f), least = _mm256_set1_ps(-127.0f);
  for (int i = 0; i < 32; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), inverse);
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes),
                       _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(scaled, most), least)));
    for (int lane = 0; lane < 8; ++lane) {
      quants[int64_t{i + lane} * stride] = static_cast<int8_t>(lanes[lane]);
    }
  }
}

}  // namespace hexad::cpu
