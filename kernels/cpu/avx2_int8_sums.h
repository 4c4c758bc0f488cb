#pragma once

// From the exact dots of avx2_int8_quads.h to scaled sums, and how a task of one Format is walked
// through. Static, as in avx2_vector.h.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2_int8_quads.h"
#include "kernels/cpu/avx2_panel.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

constexpr int kVector = 8;  // floats

// ---- Scales ------------------------------------------------------------------------------------

// Those of a chunk. min: of 32-value formats; minus it of those with multipliers.
struct ChunkScales {
  __m256 scale[2];
  __m256 min[2];
};

template <typename F>
INLINE ChunkScales LoadScales(const uint8_t* chunk) {
  ChunkScales result{};
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    result.scale[v] = LoadHalves(chunk + v * 16);
    if (F::kMin) result.min[v] = LoadHalves(chunk + F::kMins + v * 16);
  }
  return result;
}

// 16 bytes in both halves.
INLINE __m256i BroadcastLine(const uint8_t* line) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line)));
}

// The multipliers of a block's groups for Dots.
template <typename F>
INLINE void LoadMultipliers(const uint8_t* chunk, int block, __m256i* multipliers) {
  if constexpr (!F::kMultipliers) return;
  // Rows 0..7 as the upper bytes of both 16 bits of a lane; 8..15 are 8 further.
  const __m256i upper = _mm256_setr_epi8(-1, 0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3,  //
                                         -1, 4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7);
  const __m256i lower = _mm256_setr_epi8(0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1,  //
                                         4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1);
  // A sign is to be spread; what has a min has no sign.
  const __m256i order = F::kMin ? lower : upper;
  const __m256i eight = _mm256_set1_epi16(F::kMin ? 0x0008 : 0x0800);
#pragma GCC unroll 2
  for (int g = 0; g < F::kGroups; ++g) {
    __m256i line = BroadcastLine(chunk + F::kMults + (block * F::kGroups + g) * 16);
    if (F::kJoined) line = _mm256_and_si256(line, _mm256_set1_epi8(15));
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const __m256i from = v == 0 ? order : _mm256_add_epi8(order, eight);
      const __m256i rows = _mm256_shuffle_epi8(line, from);
      multipliers[g * 2 + v] = F::kMin ? rows : _mm256_srai_epi16(rows, 8);
    }
  }
}

// The multipliers of a block's mins, [2 v]: as floats, or of kJoined as two int16 a row.
template <typename F>
INLINE void LoadMinMultipliers(const uint8_t* chunk, int block, __m256* mins) {
  if constexpr (!F::kJoined) {
    mins[0] = LoadInt8(chunk + F::kMinMults + block * 16);
    mins[1] = LoadInt8(chunk + F::kMinMults + block * 16 + 8);
  } else {
    const __m256i both = _mm256_and_si256(
        _mm256_srli_epi16(LoadBytes(chunk + F::kMults + block * 32), 4), _mm256_set1_epi8(15));
    const __m128i first = _mm256_castsi256_si128(both);
    const __m128i second = _mm256_extracti128_si256(both, 1);
    mins[0] = _mm256_castsi256_ps(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second)));
    mins[1] = _mm256_castsi256_ps(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second)));
  }
}

// ---- From dots to sums. Sums are in memory, [t][16 rows]: registers are for the dots. ----------

template <typename F, int kTokens>
INLINE void AddBlock(const __m256i (&dot)[kTokens][2], const ChunkScales& scales, const Input& x,
                     float* sums) {
#pragma GCC unroll 12
  for (int t = 0; t < kTokens; ++t) {
    const __m256 x_scale = _mm256_broadcast_ss(x.scales + t);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* const at = sums + t * kPanelRows + v * kVector;
      const __m256 value = _mm256_cvtepi32_ps(dot[t][v]);
      __m256 sum = _mm256_loadu_ps(at);
      if (F::kMultipliers) {
        sum = _mm256_fmadd_ps(x_scale, value, sum);
      } else {
        sum = _mm256_fmadd_ps(_mm256_mul_ps(scales.scale[v], x_scale), value, sum);
        if (F::kMin) {
          sum = _mm256_fmadd_ps(scales.min[v], _mm256_broadcast_ss(x.sums + t), sum);
        }
      }
      _mm256_storeu_ps(at, sum);
    }
  }
}

template <typename F, typename R, int kTokens>
INLINE void Block(const uint8_t* quants, const __m256i* multipliers, const ChunkScales& scales,
                  const Input& x, float* sums) {
  __m256i dot[kTokens][2];
  Dots<F, R, kTokens>(quants, multipliers, x, dot);
  AddBlock<F, kTokens>(dot, scales, x, sums);
}

template <typename F>
INLINE void NextBlock(Input& x) {
  x.quants += x.tokens * kBlock;
  x.scales += x.tokens;
  if (F::kMin && !F::kJoined) x.sums += x.tokens;
  if (F::kJoined) x.halves += 2 * x.tokens;
  if (F::kBiasBits > 0) x.lanes += 2 * x.tokens * F::kGroups;
}

INLINE void Spread(const Input& x, __m256i* spread) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) spread[i] = Broadcast(x.quants + i * 4);
}

// From a later token on.
template <typename F>
INLINE void SkipTokens(Input& x, int tokens) {
  x.quants += tokens * kBlock;
  x.scales += tokens;
  if (F::kMin && !F::kJoined) x.sums += tokens;
  if (F::kJoined) x.halves += 2 * tokens;
  if (F::kBiasBits > 0) x.lanes += 2 * tokens;
}

// sums -= what the mins of 256 values make; mins: [8][2 v] of LoadMinMultipliers.
template <typename F, int kTokens>
INLINE void SubtractMins(const __m256* mins, const ChunkScales& scales, const Input& x,
                         float* sums) {
  for (int t = 0; t < kTokens; ++t) {
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
#pragma GCC unroll 8
    for (int b = 0; b < 8; ++b) {
      const int64_t at = b * x.tokens + t;
      const __m256 x_scale = _mm256_broadcast_ss((F::kJoined ? x.scales : x.sums) + at);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        __m256 min = mins[b * 2 + v];
        if (F::kJoined) {
          min = _mm256_cvtepi32_ps(
              _mm256_madd_epi16(_mm256_castps_si256(min), Broadcast(x.halves + 2 * at)));
        }
        sum[v] = _mm256_fmadd_ps(x_scale, min, sum[v]);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* const to = sums + t * kPanelRows + v * kVector;
      _mm256_storeu_ps(to, _mm256_fnmadd_ps(scales.min[v], sum[v], _mm256_loadu_ps(to)));
    }
  }
}

template <int kTokens>
INLINE void SetZero(float* sums) {
#pragma GCC unroll 12
  for (int i = 0; i < 2 * kTokens; ++i) _mm256_storeu_ps(sums + i * kVector, _mm256_setzero_ps());
}

// sums += scale * part, of 256 values.
template <int kTokens>
INLINE void AddSuper(const ChunkScales& scales, const float* part, float* sums) {
#pragma GCC unroll 12
  for (int i = 0; i < 2 * kTokens; ++i) {
    const __m256 sum = _mm256_loadu_ps(sums + i * kVector);
    const __m256 value = _mm256_loadu_ps(part + i * kVector);
    _mm256_storeu_ps(sums + i * kVector, _mm256_fmadd_ps(scales.scale[i % 2], value, sum));
  }
}

// ---- Tasks -------------------------------------------------------------------------------------

template <typename F>
INLINE Input InputAt(const Int8PanelTask& task, int64_t token, int64_t block) {
  const int64_t at = block * task.tokens + token;
  Input x{};
  x.quants = task.x + at * kBlock;
  x.scales = task.x_scales + at;
  if (F::kMin && !F::kJoined) x.sums = task.x_sums + at;
  if (F::kJoined) x.halves = task.x_halves + 2 * at;
  if (F::kBiasBits > 0) x.lanes = task.x_lanes + 2 * (block * F::kGroups * task.tokens + token);
  x.tokens = task.tokens;
  return x;
}

// sums: [tokens][16 rows], of panel p.
INLINE void StoreSums(const Int8PanelTask& task, int64_t p, int64_t token, int tokens,
                      const float* sums) {
  const int64_t rows = task.rows - p * kPanelRows;
  float* y = task.y + token * task.y_stride + p * kPanelRows;
  for (int t = 0; t < tokens; ++t, y += task.y_stride, sums += kPanelRows) {
    if (rows >= kPanelRows) {
      _mm256_storeu_ps(y, _mm256_loadu_ps(sums));
      _mm256_storeu_ps(y + kVector, _mm256_loadu_ps(sums + kVector));
    } else {
      for (int64_t i = 0; i < rows; ++i) y[i] = sums[i];
    }
  }
}

// Tokens that a pass takes, as the registers allow.
template <typename F>
constexpr int kMost = F::Reader::kSigned ? 4 : 6;

// As few passes as there can be, of about one size.
template <typename F>
INLINE int NextTokens(int left) {
  const int passes = (left + kMost<F> - 1) / kMost<F>;
  return (left + passes - 1) / passes;
}

}  // namespace
}  // namespace hexad::cpu
