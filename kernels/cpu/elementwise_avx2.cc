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

// (a c - b s, a s + b c), each product rounded: as the portable loop.
void RotateLanes(__m256 a, __m256 b, __m256 cosines, __m256 sines, __m256 (&out)[2]) {
  out[0] = _mm256_sub_ps(_mm256_mul_ps(a, cosines), _mm256_mul_ps(b, sines));
  out[1] = _mm256_add_ps(_mm256_mul_ps(a, sines), _mm256_mul_ps(b, cosines));
}

void RotateHalves(const float* cosines, const float* sines, int64_t pairs, float* x) {
  for (int64_t i = 0; i < pairs; i += 8) {
    __m256 out[2];
    RotateLanes(LoadUpTo(x, i, pairs), LoadUpTo(x + pairs, i, pairs), LoadUpTo(cosines, i, pairs),
                LoadUpTo(sines, i, pairs), out);
    StoreUpTo(x, i, pairs, out[0]);
    StoreUpTo(x + pairs, i, pairs, out[1]);
  }
}

// Four pairs: a vector and the same with each pair turned over.
void RotateInterleaved(const float* cosines, const float* sines, int64_t pairs, float* x) {
  int64_t i = 0;
  const __m256 signs = _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f);
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  for (; i + 4 <= pairs; i += 4) {
    const __m256 v = _mm256_loadu_ps(x + 2 * i);
    const __m256 turned = _mm256_permute_ps(v, 0xb1);
    const __m256 c =
        _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cosines + i)), twice);
    const __m256 s =
        _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sines + i)), twice);
    // Even: a c + (-(b s)); odd: b c + a s.
    const __m256 cross = _mm256_xor_ps(_mm256_mul_ps(turned, s), signs);
    _mm256_storeu_ps(x + 2 * i, _mm256_add_ps(_mm256_mul_ps(v, c), cross));
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosines[i] - b * sines[i];
    x[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

}  // namespace

void Avx2Add(float* x, const float* y, int64_t values) {
  for (int64_t i = 0; i < values; i += 8) {
    StoreUpTo(x, i, values, _mm256_add_ps(LoadUpTo(x, i, values), LoadUpTo(y, i, values)));
  }
}

float Avx2Max(const float* x, int64_t values) {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  __m256 max[2] = {lowest, lowest};
  int64_t i = 0;
  // Of a NaN and a number vpmaxps gives the second operand.
  for (; i + 16 <= values; i += 16) {
    max[0] = _mm256_max_ps(_mm256_loadu_ps(x + i), max[0]);
    max[1] = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), max[1]);
  }
  float result = MaxLanes(_mm256_max_ps(max[0], max[1]));
  for (; i < values; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

void Avx2Rotate(const float* cosines, const float* sines, int64_t pairs, bool interleaved,
                float* x) {
  if (interleaved) {
    RotateInterleaved(cosines, sines, pairs, x);
  } else {
    RotateHalves(cosines, sines, pairs, x);
  }
}

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
