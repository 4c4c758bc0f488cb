// Int8 activations for AVX2; like matmul_avx2.cc compiled with flags of its own and free of library
// headers.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_panel.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

constexpr int kBlock = 32;  // values that share a scale

INLINE __m256i Magnitude(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}

INLINE int32_t MaxInts(__m256i v) {
  __m128i max = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  max = _mm_max_epi32(max, _mm_shuffle_epi32(max, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(max, _mm_shuffle_epi32(max, 0xb1)));
}

// What a block has for each of the sums of a QuantizeTask.
struct BlockSums {
  int32_t lanes16[2];  // of each half: two int16
  int32_t lanes32;     // two int16, like halves
  int32_t halves;
  int32_t all;
};

INLINE BlockSums SumsOf(__m256i bytes) {
  // A half of the block lies in a half of the vector: 4 times the sums of lanes.
  __m256i lanes = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  lanes = _mm256_add_epi16(lanes, _mm256_shuffle_epi32(lanes, 0x4e));
  lanes = _mm256_add_epi16(lanes, _mm256_shuffle_epi32(lanes, 0xb1));
  const __m256i sums = _mm256_madd_epi16(lanes, _mm256_set1_epi16(1));
  const int32_t first = _mm256_extract_epi32(sums, 0), second = _mm256_extract_epi32(sums, 4);
  const __m128i both =
      _mm_add_epi16(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  return {{_mm256_extract_epi32(lanes, 0), _mm256_extract_epi32(lanes, 4)},
          _mm_cvtsi128_si32(both),
          (first & 0xffff) | static_cast<int32_t>(static_cast<uint32_t>(second) << 16),
          first + second};
}

// One block of 32 values.
INLINE BlockSums QuantizeBlock(const float* x, int8_t* quants, float* scale) {
  const __m256 v[4] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
                       _mm256_loadu_ps(x + 24)};
  // As integers, magnitudes are ordered like the floats, with infinity and then NaN on top.
  const int32_t largest =
      MaxInts(_mm256_max_epi32(_mm256_max_epi32(Magnitude(v[0]), Magnitude(v[1])),
                               _mm256_max_epi32(Magnitude(v[2]), Magnitude(v[3]))));
  constexpr int32_t kInfinity = 0x7f800000, kTiny = 27 << 23;  // 2^-100
  if (largest >= kInfinity || largest < kTiny) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants), _mm256_setzero_si256());
    *scale = largest < kTiny ? 0.0f : __builtin_nanf("");
    return {};
  }
  const float max = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest)));
  *scale = max / 127.0f;
  const __m256 inverse = _mm256_set1_ps(127.0f / max);
  __m256i q[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
  __m256i bytes =
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  // Packing works on the 128-bit halves: put the groups of 4 values back in order.
  bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants), bytes);
  return SumsOf(bytes);
}

INLINE void StorePair(int16_t* pairs, int64_t index, int32_t pair) {
  __builtin_memcpy(pairs + 2 * index, &pair, sizeof(pair));
}

}  // namespace

void Avx2Quantize(const QuantizeTask& task) {
  for (int64_t t = task.first_token; t < task.last_token; ++t) {
    for (int64_t b = 0; b < task.in / kBlock; ++b) {
      const int64_t at = b * task.tokens + t;
      const BlockSums sums = QuantizeBlock(task.x + t * task.in + b * kBlock,
                                           task.quants + at * kBlock, task.scales + at);
      if (task.sums != nullptr) task.sums[at] = task.scales[at] * static_cast<float>(sums.all);
      if (task.halves != nullptr) StorePair(task.halves, at, sums.halves);
      if (task.lanes32 != nullptr) StorePair(task.lanes32, at, sums.lanes32);
      if (task.lanes16 != nullptr) {
        StorePair(task.lanes16, at + b * task.tokens, sums.lanes16[0]);
        StorePair(task.lanes16, at + (b + 1) * task.tokens, sums.lanes16[1]);
      }
    }
  }
}

}  // namespace hexad::cpu
