#pragma once

// What the AVX2 panel products share; Task: PanelTask or Int8PanelTask. Static, as in
// avx2_vector.h.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

// Arrays of vectors stay in registers only when everything around them is one function.
#define INLINE inline __attribute__((always_inline))

namespace hexad::cpu {

// Scale (or min) of rows 8v..8v+7 in group g, exactly.
namespace {
struct GroupScale {
  __m256 scale[2];
  __m256 min[2];
};
}  // namespace

template <typename Task>
[[maybe_unused]] static INLINE GroupScale LoadGroupScale(const Task& task, int64_t g) {
  const PackedFormat& format = task.format;
  GroupScale result{};
  const int planes = format.has_min ? 2 : 1;
  if (!format.multipliers) {
    const uint8_t* line = task.scales + g * planes * 32;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      result.scale[v] = LoadHalves(line + v * 16);
      result.min[v] = format.has_min ? LoadHalves(line + 32 + v * 16) : _mm256_setzero_ps();
    }
    return result;
  }
  const uint8_t* line = task.scales + g * planes * 16;
  const uint8_t* super = task.supers + g * format.group / 256 * planes * 32;
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    result.scale[v] = _mm256_mul_ps(LoadHalves(super + v * 16), LoadInt8(line + v * 8));
    result.min[v] = _mm256_setzero_ps();
    if (format.has_min) {  // multipliers of mins are at most 63, so signed bytes do
      const __m256 min =
          _mm256_mul_ps(LoadHalves(super + 32 + v * 16), LoadInt8(line + 16 + v * 8));
      result.min[v] = _mm256_sub_ps(_mm256_setzero_ps(), min);
    }
  }
  return result;
}

template <typename Task>
[[maybe_unused]] static void StorePanelRow(const Task& task, int64_t token, __m256 low,
                                           __m256 high) {
  float* y = task.y + token * task.y_stride;
  if (task.rows == kPanelRows) {
    _mm256_storeu_ps(y, low);
    _mm256_storeu_ps(y + 8, high);
    return;
  }
  alignas(32) float row[kPanelRows];
  _mm256_store_ps(row, low);
  _mm256_store_ps(row + 8, high);
  for (int i = 0; i < task.rows; ++i) y[i] = row[i];
}

}  // namespace hexad::cpu
