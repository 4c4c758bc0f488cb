// Norms and activations for AVX2 and FMA. See matmul_avx2.cc for what may be included here.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

__m256i TailMask(int64_t lanes) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Values i..i+7, zero past the end; the same for storing. A value's bits do not depend on its lane.
__m256 LoadUpTo(const float* x, int64_t i, int64_t values) {
  if (i + 8 <= values) return _mm256_loadu_ps(x + i);
  return _mm256_maskload_ps(x + i, TailMask(values - i));
}

void StoreUpTo(float* x, int64_t i, int64_t values, __m256 v) {
  if (i + 8 <= values) {
    _mm256_storeu_ps(x + i, v);
  } else {
    _mm256_maskstore_ps(x + i, TailMask(values - i), v);
  }
}

// x / (1 + e^-z).
__m256 TimesSigmoid(__m256 x, __m256 z) {
  const __m256 e = Exp(_mm256_sub_ps(_mm256_setzero_ps(), z));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

}  // namespace

void Avx2RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon,
                 int64_t dim, float* out) {
  __m256 squares[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                       _mm256_setzero_ps()};
  for (int64_t i = 0; i < dim; i += 8) {
    const __m256 v = LoadUpTo(x, i, dim);
    __m256& sum = squares[i / 8 % 4];
    sum = _mm256_fmadd_ps(v, v, sum);
  }
  const float sum = SumLanes(
      _mm256_add_ps(_mm256_add_ps(squares[0], squares[1]), _mm256_add_ps(squares[2], squares[3])));
  const float mean = sum / static_cast<float>(dim);
  const __m256 factor = _mm256_set1_ps(1.0f / __builtin_sqrtf(mean + epsilon));
  const __m256 offset = _mm256_set1_ps(weight_offset);
  for (int64_t i = 0; i < dim; i += 8) {
    __m256 v = _mm256_mul_ps(LoadUpTo(x, i, dim), factor);
    if (weight != nullptr) v = _mm256_mul_ps(v, _mm256_add_ps(LoadUpTo(weight, i, dim), offset));
    StoreUpTo(out, i, dim, v);
  }
}

void Avx2Softcap(float* x, float cap, int64_t values) {
  const __m256 c = _mm256_set1_ps(cap);
  for (int64_t i = 0; i < values; i += 8) {
    const __m256 v = _mm256_div_ps(LoadUpTo(x, i, values), c);
    StoreUpTo(x, i, values, _mm256_mul_ps(c, Tanh(v)));
  }
}

void Avx2SiluGate(const float* gate, const float* up, int64_t values, float* out) {
  for (int64_t i = 0; i < values; i += 8) {
    const __m256 g = LoadUpTo(gate, i, values);
    StoreUpTo(out, i, values, _mm256_mul_ps(TimesSigmoid(g, g), LoadUpTo(up, i, values)));
  }
}

void Avx2GeluGate(const float* gate, const float* up, int64_t values, float* out) {
  // g / 2 * (1 + tanh(u)) = g * sigmoid(2u), u = sqrt(2 / pi) * (g + 0.044715 g^3)
  const __m256 linear = _mm256_set1_ps(2 * 0.797884560802865f);
  const __m256 cubic = _mm256_set1_ps(2 * 0.797884560802865f * 0.044715f);
  for (int64_t i = 0; i < values; i += 8) {
    const __m256 g = LoadUpTo(gate, i, values);
    const __m256 z = _mm256_mul_ps(g, _mm256_fmadd_ps(_mm256_mul_ps(g, g), cubic, linear));
    StoreUpTo(out, i, values, _mm256_mul_ps(TimesSigmoid(g, z), LoadUpTo(up, i, values)));
  }
}

}  // namespace hexad::cpu
