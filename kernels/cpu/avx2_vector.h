#pragma once

// What the AVX2 files share. All of it has internal linkage (static): each file gets its own copy,
// and none can stand in for code that runs on older CPUs.

#include <immintrin.h>
#include <stdint.h>

namespace hexad::cpu {

[[maybe_unused]] static inline __m256i LoadBytes(const uint8_t* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

// 8 halves.
[[maybe_unused]] static inline __m256 LoadHalves(const uint8_t* bytes) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}

[[maybe_unused]] static inline __m256 LoadInt8(const uint8_t* bytes) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
}

// ((0+4) + (2+6)) + ((1+5) + (3+7)).
[[maybe_unused]] static inline float SumLanes(__m256 v) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

[[maybe_unused]] static inline float MaxLanes(__m256 v) {
  __m128 max = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  max = _mm_max_ps(max, _mm_movehl_ps(max, max));
  return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
}

// e^x within 2 units in the last place; 0 below -87.3 (minus infinity too), infinity above 88.7,
// NaN for NaN. Cody-Waite reduction and the minimax polynomial of Cephes' expf.
[[maybe_unused]] static inline __m256 Exp(__m256 x) {
  const __m256 low = _mm256_set1_ps(-87.3f), high = _mm256_set1_ps(88.7f);
  const __m256 clamped = _mm256_max_ps(low, _mm256_min_ps(high, x));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(clamped, _mm256_set1_ps(1.44269504088896341f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), clamped);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
  // 2^n in two factors: n reaches 128, which one exponent field does not hold.
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), bias), 23);
  __m256 result =
      _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
  result = _mm256_andnot_ps(_mm256_cmp_ps(x, low, _CMP_LT_OQ), result);
  const __m256 above = _mm256_cmp_ps(x, high, _CMP_GT_OQ);
  result = _mm256_blendv_ps(result, _mm256_set1_ps(__builtin_inff()), above);
  return _mm256_blendv_ps(result, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// Near zero 1 - 2 / (e^2x + 1) would cancel; there the series does.
[[maybe_unused]] static inline __m256 Tanh(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f), two = _mm256_set1_ps(2.0f);
  const __m256 e = Exp(_mm256_mul_ps(x, two));
  const __m256 large = _mm256_sub_ps(one, _mm256_div_ps(two, _mm256_add_ps(e, one)));
  const __m256 x2 = _mm256_mul_ps(x, x);
  __m256 p = _mm256_fmadd_ps(x2, _mm256_set1_ps(-17.0f / 315), _mm256_set1_ps(2.0f / 15));
  p = _mm256_fmadd_ps(p, x2, _mm256_set1_ps(-1.0f / 3));
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(p, x2), x, x);
  const __m256 is_small = _mm256_cmp_ps(x2, _mm256_set1_ps(0.04f), _CMP_LT_OQ);
  return _mm256_blendv_ps(large, small, is_small);
}

}  // namespace hexad::cpu
