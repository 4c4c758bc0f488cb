#pragma once

// The two products of attention for AVX2: queries times keys and weights times values, up to six
// rows at a time. Keys and values are converted in registers, by units that the FMAs leave idle.
// Static, as in avx2_vector.h.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/avx2_vector.h"

namespace hexad::cpu {
namespace {

constexpr int kSegment = 256;
constexpr int kTile = 16;
constexpr int kTiles = kSegment / kTile;
constexpr int kMostRows = 6;  // of one pass: 12 chains, two vectors of keys, one of a query

// The part of one segment that any row of the task sees.
struct Segment {
  int64_t start;  // position of its first token
  int begin;      // first and last + 1 token seen, within the segment
  int end;
  const uint8_t* k[kTiles];  // tiles begin / 16 .. (end - 1) / 16
  const uint8_t* v[kTiles];
};

template <KvKind kKind>
inline constexpr int kValueBytes = kKind == KvKind::kFloat  ? 4
                                   : kKind == KvKind::kHalf ? 2
                                                            : 1;

template <KvKind kKind>
inline __attribute__((always_inline)) __m256 LoadValues(const uint8_t* values) {
  if constexpr (kKind == KvKind::kFloat) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(values));
  } else if constexpr (kKind == KvKind::kHalf) {
    return LoadHalves(values);
  } else {
    return LoadInt8(values);
  }
}

// What a chain fetches into the L2 cache meanwhile: the lines of `first` and, with four vectors,
// `second`, each of them + i * step in its i-th link. So memory is read evenly; bursts would hold
// up the chains. With a step of 0 it is one line, for a chain that has nothing to fetch.
struct Ahead {
  const uint8_t* first;
  const uint8_t* second;
  int64_t step;
};

// chain[r][n] += sum over i < count of a[r * a_stride + i] * b[i], the i-th b being vectors at
// b[n / 2] + i * b_stride bytes.
template <KvKind kKind, int kRows, int kVectors>
inline __attribute__((always_inline)) void Chain(const float* a, int64_t a_stride,
                                                 const uint8_t* const* b, int64_t b_stride,
                                                 int count, Ahead ahead,
                                                 __m256 (&chain)[kRows][kVectors]) {
  const uint8_t* b0 = b[0];
  const uint8_t* b1 = b[kVectors > 2 ? 1 : 0];
  for (int i = 0; i < count; ++i, b0 += b_stride, b1 += b_stride) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead.first), _MM_HINT_T1);
    ahead.first += ahead.step;
    if constexpr (kVectors == 4) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead.second), _MM_HINT_T1);
      ahead.second += ahead.step;
    }
    __m256 values[kVectors];
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      values[n] = LoadValues<kKind>((n < 2 ? b0 : b1) + n % 2 * 8 * kValueBytes<kKind>);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 factor = _mm256_broadcast_ss(a + r * a_stride + i);
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) {
        chain[r][n] = _mm256_fmadd_ps(factor, values[n], chain[r][n]);
      }
    }
  }
}

// ---- Scores: lanes are keys, the chains run over the head's dimensions. -------------------------

// q: [rows, head_dim]. scores: [rows, kSegment], of the first of `tiles`.
template <KvKind kKind, int kRows, int kTileCount>
void ScoreRows(const float* q, int head_dim, const uint8_t* const* tiles, Ahead ahead,
               float* scores) {
  constexpr int kVectors = 2 * kTileCount;
  // int8: a chain of each 32 dimensions, whose scales then multiply it.
  const int group = kKind == KvKind::kInt8 ? 32 : head_dim;
  for (int d = 0; d < head_dim; d += group) {
    __m256 chain[kRows][kVectors];
    const uint8_t* keys[kTileCount];
#pragma GCC unroll 2
    for (int t = 0; t < kTileCount; ++t) keys[t] = tiles[t] + d * kTile * kValueBytes<kKind>;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) chain[r][n] = _mm256_setzero_ps();
    }
    Chain<kKind, kRows, kVectors>(q + d, head_dim, keys, kTile * kValueBytes<kKind>, group, ahead,
                                  chain);
    ahead.first += group * ahead.step;
    ahead.second += group * ahead.step;
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      __m256 scale;
      if constexpr (kKind == KvKind::kInt8) {
        scale = LoadHalves(tiles[n / 2] + head_dim * kTile + d + n % 2 * 16);
      }
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        float* const score = scores + r * kSegment + n * 8;
        if constexpr (kKind == KvKind::kInt8) {
          const __m256 sum = d == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(score);
          _mm256_storeu_ps(score, _mm256_fmadd_ps(chain[r][n], scale, sum));
        } else {
          _mm256_storeu_ps(score, chain[r][n]);
        }
      }
    }
  }
}

// Rows of the next pass when `rows` are left: passes of three rows and of one are the slow ones.
inline int RowsOfPass(int rows) {
  if (rows == 7 || rows == 9) return 5;
  return rows == 8 ? 4 : rows < kMostRows ? rows : kMostRows;
}

// One or two tiles. next: as many, to be fetched meanwhile.
template <KvKind kKind>
void ScoreTiles(const float* q, int rows, int head_dim, const uint8_t* const* tiles, int count,
                const uint8_t* const* next, int64_t tile_bytes, float* scores) {
  using Function = void (*)(const float*, int, const uint8_t* const*, Ahead, float*);
  static constexpr Function kSingle[] = {ScoreRows<kKind, 1, 1>, ScoreRows<kKind, 2, 1>,
                                         ScoreRows<kKind, 3, 1>, ScoreRows<kKind, 4, 1>,
                                         ScoreRows<kKind, 5, 1>, ScoreRows<kKind, 6, 1>};
  static constexpr Function kPair[] = {ScoreRows<kKind, 1, 2>, ScoreRows<kKind, 2, 2>};
  for (int r = 0, pass; r < rows; r += pass) {
    pass = RowsOfPass(rows - r);
    const float* const own_q = q + int64_t{r} * head_dim;
    float* const own_scores = scores + r * kSegment;
    const int64_t step = r == 0 ? tile_bytes / head_dim : 0;
    if (pass <= 2 && count == 2) {
      kPair[pass - 1](own_q, head_dim, tiles, {next[0], next[1], step}, own_scores);
      continue;
    }
    for (int t = 0; t < count; ++t) {
      kSingle[pass - 1](own_q, head_dim, tiles + t, {next[t], next[t], step},
                        own_scores + t * kTile);
    }
  }
}

// ---- Sums of values: lanes are dimensions, the chains run over the tokens. ----------------------

// weights: [rows, kSegment]. out: of the first row, from `dimension` on. next: tiles of which to
// fetch the lines from byte `ahead` on, as many as there are dimensions here, or nullptr.
template <KvKind kKind, int kRows, int kVectors>
void MixColumns(const Segment& segment, const float* weights, int head_dim, int dimension,
                const uint8_t* const* next, int64_t step, float* out, int64_t out_stride) {
  __m256 chain[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) chain[r][n] = _mm256_setzero_ps();
  }
  const int64_t stride = int64_t{head_dim} * kValueBytes<kKind>;
  for (int token = segment.begin; token < segment.end;) {
    const int tile = token / kTile;
    const int tile_end = (tile + 1) * kTile;
    const int end = tile_end < segment.end ? tile_end : segment.end;
    const uint8_t* const first =
        segment.v[tile] + token % kTile * stride + dimension * kValueBytes<kKind>;
    const uint8_t* const values[2] = {first, first + 16 * kValueBytes<kKind>};
    Ahead ahead{first, first, 0};
    if (next != nullptr) {
      ahead.first = next[tile] + dimension * step;
      ahead.second = ahead.first + kTile * step;
      ahead.step = step;
    }
    Chain<kKind, kRows, kVectors>(weights + token, kSegment, values, stride, end - token, ahead,
                                  chain);
    token = end;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      _mm256_storeu_ps(out + r * out_stride + n * 8, chain[r][n]);
    }
  }
}

// int8: the weights times the values' scales of dimensions 32 * group ...
inline void ScaleWeights(const Segment& segment, int rows, const float* weights, int head_dim,
                         int group, float* out) {
  for (int tile = segment.begin / kTile; tile * kTile < segment.end; ++tile) {
    const uint8_t* const scales = segment.v[tile] + kTile * head_dim + group * 32;
    const __m256 low = LoadHalves(scales), high = LoadHalves(scales + 16);
    for (int r = 0; r < rows; ++r) {
      const int at = r * kSegment + tile * kTile;
      _mm256_storeu_ps(out + at, _mm256_mul_ps(_mm256_loadu_ps(weights + at), low));
      _mm256_storeu_ps(out + at + 8, _mm256_mul_ps(_mm256_loadu_ps(weights + at + 8), high));
    }
  }
}

template <KvKind kKind, int kRows>
void MixRows(const Segment& segment, const float* weights, int head_dim, const uint8_t* const* next,
             int64_t step, float* scaled, float* out, int64_t out_stride) {
  constexpr int kVectors = kRows <= 2 ? 4 : 2;
  const float* factors = weights;
  int d = 0;
  for (; d + kVectors * 8 <= head_dim; d += kVectors * 8) {
    if (kKind == KvKind::kInt8 && d % 32 == 0) {
      ScaleWeights(segment, kRows, weights, head_dim, d / 32, scaled);
      factors = scaled;
    }
    MixColumns<kKind, kRows, kVectors>(segment, factors, head_dim, d, next, step, out + d,
                                       out_stride);
  }
  if constexpr (kKind != KvKind::kInt8) {
    for (; d < head_dim; d += 8) {
      MixColumns<kKind, kRows, 1>(segment, factors, head_dim, d, nullptr, 0, out + d, out_stride);
    }
  }
}

// next: tiles to be fetched meanwhile, one for each of the segment's; or nullptr.
template <KvKind kKind>
void MixSegment(const Segment& segment, int rows, const float* weights, int head_dim,
                const uint8_t* const* next, int64_t tile_bytes, float* scaled, float* out,
                int64_t out_stride) {
  using Function = void (*)(const Segment&, const float*, int, const uint8_t* const*, int64_t,
                            float*, float*, int64_t);
  static constexpr Function kMix[] = {MixRows<kKind, 1>, MixRows<kKind, 2>, MixRows<kKind, 3>,
                                      MixRows<kKind, 4>, MixRows<kKind, 5>, MixRows<kKind, 6>};
  for (int r = 0, pass; r < rows; r += pass) {
    pass = RowsOfPass(rows - r);
    kMix[pass - 1](segment, weights + r * kSegment, head_dim, r == 0 ? next : nullptr,
                   tile_bytes / head_dim, scaled, out + r * out_stride, out_stride);
  }
}

}  // namespace
}  // namespace hexad::cpu
