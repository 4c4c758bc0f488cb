#include "server/bench/peak_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HEXAD_PEAK_AVX2 1
#endif

namespace hexad {
namespace {

// The compiler must take the value as changed, and so can neither hoist nor drop what uses it.
template <typename T>
void Keep(T& value) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(value));
#else
  asm volatile("" : "+w"(value));
#endif
}

void Fp32Portable(int64_t rounds) {
  using Vector = float __attribute__((vector_size(16)));
  Vector x = {0.5f, 0.5f, 0.5f, 0.5f};
  Vector sums[8] = {};
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 8
    for (Vector& sum : sums) {
      Keep(x);
      sum += x * x;
    }
  }
  for (Vector& sum : sums) Keep(sum);
}

#ifdef HEXAD_PEAK_AVX2

#define HEXAD_AVX2 __attribute__((target("avx2,fma")))

HEXAD_AVX2 void Fp32Avx2(int64_t rounds) {
  __m256 a = _mm256_set1_ps(0.5f);
  __m256 b = _mm256_set1_ps(0.25f);
  __m256 sums[12];
#pragma GCC unroll 12
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m256& sum : sums) {
      asm volatile("" : "+x"(a), "+x"(b));
      sum = _mm256_fmadd_ps(a, b, sum);
    }
  }
#pragma GCC unroll 12
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));
}

HEXAD_AVX2 void Int8Avx2(int64_t rounds) {
  __m256i a = _mm256_set1_epi8(3);
  __m256i b = _mm256_set1_epi8(5);
  __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[8];
#pragma GCC unroll 8
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 8
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(a), "+x"(b));
      const __m256i pairs = _mm256_maddubs_epi16(a, b);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
  }
#pragma GCC unroll 8
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

// Eight products of up to 15 x 127 x 2 fit 16 bits, so sums are widened once in eight.
HEXAD_AVX2 void Int4Avx2(int64_t rounds) {
  __m256i a = _mm256_set1_epi8(3);
  __m256i b = _mm256_set1_epi8(5);
  __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[6];
#pragma GCC unroll 6
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t round = 0; round < rounds; ++round) {
    __m256i narrow[6];
#pragma GCC unroll 6
    for (__m256i& sum : narrow) sum = _mm256_setzero_si256();
      // Not unrolled: the arrays must stay in registers.
#pragma GCC unroll 1
    for (int product = 0; product < 8; ++product) {
#pragma GCC unroll 6
      for (__m256i& sum : narrow) {
        asm volatile("" : "+x"(a), "+x"(b));
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b));
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(narrow[i], ones));
    }
  }
#pragma GCC unroll 6
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

HEXAD_AVX2 void ReadAvx2(const std::byte* data, int64_t bytes) {
  const int64_t quarter = bytes / 4;
  // Named one by one: an array may end up on the stack, and its latency would be the limit.
  __m256i sum0 = _mm256_setzero_si256();
  __m256i sum1 = sum0;
  __m256i sum2 = sum0;
  __m256i sum3 = sum0;
  const auto* at0 = reinterpret_cast<const __m256i*>(data);
  const auto* at1 = reinterpret_cast<const __m256i*>(data + quarter);
  const auto* at2 = reinterpret_cast<const __m256i*>(data + 2 * quarter);
  const auto* at3 = reinterpret_cast<const __m256i*>(data + 3 * quarter);
  for (int64_t vector = 0; vector < quarter / 32; vector += 4) {
#pragma GCC unroll 4
    for (int64_t i = vector; i < vector + 4; ++i) {
      sum0 = _mm256_xor_si256(sum0, _mm256_loadu_si256(at0 + i));
      sum1 = _mm256_xor_si256(sum1, _mm256_loadu_si256(at1 + i));
      sum2 = _mm256_xor_si256(sum2, _mm256_loadu_si256(at2 + i));
      sum3 = _mm256_xor_si256(sum3, _mm256_loadu_si256(at3 + i));
    }
  }
  asm volatile("" : "+x"(sum0), "+x"(sum1), "+x"(sum2), "+x"(sum3));
}

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

#endif  // HEXAD_PEAK_AVX2

void ReadPortable(const std::byte* data, int64_t bytes) {
  using Vector = long long __attribute__((vector_size(16), aligned(1), may_alias));
  const int64_t quarter = bytes / 4;
  Vector sums[4] = {};
  for (int64_t at = 0; at < quarter; at += 16) {
#pragma GCC unroll 4
    for (int stream = 0; stream < 4; ++stream) {
      sums[stream] ^= *reinterpret_cast<const Vector*>(data + stream * quarter + at);
    }
  }
  for (Vector& sum : sums) Keep(sum);
}

}  // namespace

PeakLoops BestPeakLoops() {
#ifdef HEXAD_PEAK_AVX2
  if (HasAvx2()) {
    return {{Fp32Avx2, 12 * 8 * 2}, {Int8Avx2, 8 * 32 * 2}, {Int4Avx2, 6 * 8 * 32 * 2}};
  }
#endif
  return {{Fp32Portable, 8 * 4 * 2}, {}, {}};
}

void ReadFourStreams(const std::byte* data, int64_t bytes) {
#ifdef HEXAD_PEAK_AVX2
  if (HasAvx2()) return ReadAvx2(data, bytes);
#endif
  ReadPortable(data, bytes);
}

}  // namespace hexad
