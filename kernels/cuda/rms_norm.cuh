#pragma once

// RMSNorm (Zhang and Sennrich 2019): out = x / sqrt(mean(x^2) + epsilon) * weight, row by row.
// One block a row. The order of additions depends on the row size and kThreads alone, never on the
// number of rows: equal rows give equal bits in any batch.

#include "kernels/cuda/portable.h"

namespace hexad::cuda {

// ------------------------------------------------------------------------------------- kernels

// The sum over the warp in every lane: a butterfly, so that all lanes add in the same order.
__device__ inline float WarpSum(float value) {
  for (int bits = kWarp / 2; bits > 0; bits /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, bits, kWarp);
  }
  return value;
}

// x, out: [rows, size], may be the same; weight: [size]. REQUIRES: blockDim.x == kThreads.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    RmsNormKernel(const float* x, const float* weight, float* out, int32_t size, float epsilon) {
  static_assert(kThreads % kWarp == 0);
  HEXAD_SHARED(float, warp_sums, kThreads / kWarp);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * size;

  float sum = 0.0f;
  for (int32_t i = thread; i < size; i += kThreads) sum += x[row + i] * x[row + i];
  sum = WarpSum(sum);
  if (thread % kWarp == 0) warp_sums[thread / kWarp] = sum;
  __syncthreads();

  float total = 0.0f;
  for (int warp = 0; warp < kThreads / kWarp; ++warp) total += warp_sums[warp];
  // 1/sqrt rather than rsqrt: both operations round correctly on every machine.
  const float scale = 1.0f / sqrtf(total / static_cast<float>(size) + epsilon);
  for (int32_t i = thread; i < size; i += kThreads) {
    out[row + i] = x[row + i] * scale * weight[i];
  }
}

// ------------------------------------------------------------------------------------ launchers

// Asynchronous on `stream`. REQUIRES: rows >= 0, size > 0.
inline void RmsNorm(Stream stream, const float* x, const float* weight, float* out, int32_t rows,
                    int32_t size, float epsilon) {
  constexpr int kThreads = 256;
  if (rows == 0) return;  // an empty grid is an error to CUDA
  HEXAD_LAUNCH(RmsNormKernel<kThreads>, static_cast<unsigned>(rows), kThreads, 0, stream, x, weight,
               out, size, epsilon);
}

}  // namespace hexad::cuda
