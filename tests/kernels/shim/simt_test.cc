// The shim itself: what CUDA code means, in every order of the threads, and the rules whose breach
// it must report.

#include "kernels/shim/simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/portable.h"

namespace hexad::cuda {
namespace {

using ::testing::ElementsAreArray;
using ::testing::Eq;
using ::testing::HasSubstr;

// ------------------------------------------------------------------------- kernels, as in a .cuh

__global__ void WriteIndices(int* out) {
  const int flat =
      static_cast<int>((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y +
                       threadIdx.y * blockDim.x + threadIdx.x);
  out[flat] = flat;
}

// Every thread reads what another wrote: wrong unless the barrier holds.
__global__ void ReverseInBlock(const int* in, int* out) {
  HEXAD_SHARED(int, tile, 96);
  const int thread = static_cast<int>(threadIdx.x);
  const int size = static_cast<int>(blockDim.x);
  const int base = static_cast<int>(blockIdx.x) * size;
  tile[thread] = in[base + thread];
  __syncthreads();
  out[base + thread] = tile[size - 1 - thread];
}

__global__ void ReverseWithoutBarrier(const int* in, int* out) {
  HEXAD_SHARED(int, tile, 96);
  const int thread = static_cast<int>(threadIdx.x);
  tile[thread] = in[thread];
  out[thread] = tile[static_cast<int>(blockDim.x) - 1 - thread];
}

__global__ void Shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int* mine = out + 5 * threadIdx.x;
  mine[0] = __shfl_xor_sync(kAllLanes, lane, 5, kWarp);
  mine[1] = __shfl_down_sync(kAllLanes, lane, 3, 8);
  mine[2] = __shfl_up_sync(kAllLanes, lane, 3, kWarp);
  mine[3] = __shfl_sync(kAllLanes, lane, 7, 16);
  mine[4] = static_cast<int>(__ballot_sync(kAllLanes, lane % 3 == 0));
}

__global__ void HalfWarps(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const uint32_t mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  // The halves are not in step: the upper one shuffles twice.
  int value = __shfl_xor_sync(mask, lane, 1, kWarp);
  if (lane >= 16) value = __shfl_xor_sync(mask, value, 2, kWarp);
  __syncwarp(kAllLanes);
  out[lane] = value;
}

__global__ void DynamicSum(const int* in, int* out) {
  HEXAD_SHARED_DYNAMIC(int, tile);
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned i = 0; i < blockDim.x; ++i) atomicAdd(out, tile[i]);
  }
}

__global__ void ReadUnwrittenShared(float* out) {
  HEXAD_SHARED(float, tile, 4);
  if (blockIdx.x == 0) tile[threadIdx.x] = 1.0f;
  out[blockIdx.x] = tile[threadIdx.x];
}

__global__ void BarrierMissedByHalf() {
  if (threadIdx.x < 16) return;
  __syncthreads();
}

__global__ void TwoBarriers() {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void ShuffleAfterExit(int* out) {
  if (threadIdx.x == 9) return;
  out[threadIdx.x] = __shfl_xor_sync(kAllLanes, static_cast<int>(threadIdx.x), 1, kWarp);
}

__global__ void ShuffleAgainstBarrier(int* out) {
  if (threadIdx.x == 9) {
    __syncthreads();
  } else {
    out[threadIdx.x] = __shfl_xor_sync(kAllLanes, static_cast<int>(threadIdx.x), 1, kWarp);
  }
}

__global__ void MasksDisagree(int* out) {
  const uint32_t mask = threadIdx.x == 0 ? kAllLanes : kAllLanes - 1;
  out[threadIdx.x] = __shfl_sync(mask, 1, 1, kWarp);
}

__global__ void SourceOutsideMask(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20, kWarp);
}

__global__ void LaneOutsideItsMask(int* out) { out[threadIdx.x] = __shfl_sync(0xffu, 1, 0, kWarp); }

int Deep(volatile int* out, int depth) {
  volatile char frame[512];
  frame[depth % 512] = static_cast<char>(depth);
  return depth == 0 ? *out + frame[0] : Deep(out, depth - 1) + 1;
}
__global__ void DeepStack(int* out) {
  out[threadIdx.x] = 0;
  __syncthreads();
  out[threadIdx.x] = Deep(out + threadIdx.x, 20);
}

// ---------------------------------------------------------------------------------------- tests

struct Order {
  shim::ThreadOrder order;
  uint64_t seed;
};

class SimtTest : public ::testing::TestWithParam<Order> {
 protected:
  shim::Stream stream_{GetParam().order, GetParam().seed};
};

INSTANTIATE_TEST_SUITE_P(Orders, SimtTest,
                         ::testing::Values(Order{shim::ThreadOrder::kForward, 0},
                                           Order{shim::ThreadOrder::kReverse, 0},
                                           Order{shim::ThreadOrder::kRandom, 1},
                                           Order{shim::ThreadOrder::kRandom, 2}));

std::vector<int> Iota(size_t size) {
  std::vector<int> values(size);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST_P(SimtTest, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> out(3 * 2 * 8 * 4, -1);
  HEXAD_LAUNCH(WriteIndices, shim::Dim3(3, 2), shim::Dim3(8, 4), 0, &stream_, out.data());
  EXPECT_THAT(stream_.error(), Eq(""));
  EXPECT_THAT(out, ElementsAreArray(Iota(out.size())));
}

TEST_P(SimtTest, BarrierMakesSharedMemoryVisible) {
  const std::vector<int> in = Iota(4 * 96);
  std::vector<int> out(in.size()), want;
  for (int block = 0; block < 4; ++block) {
    for (int i = 95; i >= 0; --i) want.push_back(block * 96 + i);
  }
  HEXAD_LAUNCH(ReverseInBlock, 4, 96, 0, &stream_, in.data(), out.data());
  EXPECT_THAT(stream_.error(), Eq(""));
  EXPECT_THAT(out, ElementsAreArray(want));
}

TEST_P(SimtTest, MissingBarrierShows) {
  const std::vector<int> in = Iota(96);
  std::vector<int> out(96);
  HEXAD_LAUNCH(ReverseWithoutBarrier, 1, 96, 0, &stream_, in.data(), out.data());
  EXPECT_NE(out, std::vector<int>(in.rbegin(), in.rend()));
}

TEST_P(SimtTest, ShufflesAndBallotMeanWhatTheyMeanOnTheDevice) {
  std::vector<int> out(5 * 64);
  HEXAD_LAUNCH(Shuffles, 1, 64, 0, &stream_, out.data());
  ASSERT_THAT(stream_.error(), Eq(""));
  for (int thread = 0; thread < 64; ++thread) {
    const int lane = thread % 32;
    EXPECT_EQ(out[5 * thread], lane ^ 5);
    EXPECT_EQ(out[5 * thread + 1], lane % 8 + 3 < 8 ? lane + 3 : lane);
    EXPECT_EQ(out[5 * thread + 2], lane >= 3 ? lane - 3 : lane);
    EXPECT_EQ(out[5 * thread + 3], lane < 16 ? 7 : 23);
    EXPECT_EQ(static_cast<uint32_t>(out[5 * thread + 4]), 0b01001001001001001001001001001001u);
  }
}

TEST_P(SimtTest, PartsOfAWarpGoTheirOwnWay) {
  std::vector<int> out(32);
  HEXAD_LAUNCH(HalfWarps, 1, 32, 0, &stream_, out.data());
  ASSERT_THAT(stream_.error(), Eq(""));
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 16 ? lane ^ 1 : lane ^ 3);
}

TEST_P(SimtTest, DynamicSharedMemoryAndAtomics) {
  const std::vector<int> in = Iota(100);
  int sum = 0;
  HEXAD_LAUNCH(DynamicSum, 1, 100, 100 * sizeof(int), &stream_, in.data(), &sum);
  EXPECT_THAT(stream_.error(), Eq(""));
  EXPECT_EQ(sum, 4950);
}

TEST_P(SimtTest, SharedMemoryIsPoisonedInEveryBlock) {
  std::vector<float> out(3);
  HEXAD_LAUNCH(ReadUnwrittenShared, 3, 1, 0, &stream_, out.data());
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_TRUE(std::isnan(out[2]));
}

TEST_P(SimtTest, ThreadsHaveStackEnough) {
  std::vector<int> out(256);
  HEXAD_LAUNCH(DeepStack, 1, 256, 0, &stream_, out.data());
  EXPECT_THAT(stream_.error(), Eq(""));
  EXPECT_THAT(out, ElementsAreArray(std::vector<int>(256, 20)));
}

TEST_P(SimtTest, DivergentBarrierIsReported) {
  HEXAD_LAUNCH(BarrierMissedByHalf, 1, 32, 0, &stream_);
  EXPECT_THAT(stream_.error(), HasSubstr("block (0,0,0): divergent barrier: thread (16,0,0)"));
  EXPECT_THAT(stream_.error(), HasSubstr("thread (0,0,0) has exited"));
}

TEST_P(SimtTest, BarriersAtTwoPlacesAreReported) {
  HEXAD_LAUNCH(TwoBarriers, 1, 32, 0, &stream_);
  EXPECT_THAT(stream_.error(), HasSubstr("divergent barrier"));
}

TEST_P(SimtTest, ShuffleWithAnExitedLaneIsReported) {
  std::vector<int> out(32);
  HEXAD_LAUNCH(ShuffleAfterExit, 1, 32, 0, &stream_, out.data());
  EXPECT_THAT(stream_.error(), HasSubstr("__shfl_xor_sync"));
  EXPECT_THAT(stream_.error(), HasSubstr("lane 9 of its mask has exited"));
}

TEST_P(SimtTest, ShuffleInAPartialWarpIsReported) {
  std::vector<int> out(5 * 40);
  HEXAD_LAUNCH(Shuffles, 1, 40, 0, &stream_, out.data());
  EXPECT_THAT(stream_.error(), HasSubstr("lane 8 of its mask does not exist"));
}

TEST_P(SimtTest, ShuffleAgainstABarrierIsReported) {
  std::vector<int> out(32);
  HEXAD_LAUNCH(ShuffleAgainstBarrier, 1, 32, 0, &stream_, out.data());
  EXPECT_THAT(stream_.error(), HasSubstr("lane 9 of its mask waits at the barrier"));
}

TEST_P(SimtTest, WrongMasksAreReported) {
  std::vector<int> out(32);
  shim::Stream other(GetParam().order, GetParam().seed);
  HEXAD_LAUNCH(MasksDisagree, 1, 32, 0, &stream_, out.data());
  EXPECT_THAT(stream_.error(), HasSubstr("__shfl_sync"));
  HEXAD_LAUNCH(SourceOutsideMask, 1, 32, 0, &other, out.data());
  EXPECT_THAT(other.error(), HasSubstr("reads lane 20, which is not in the mask"));
  shim::Stream third(GetParam().order, GetParam().seed);
  HEXAD_LAUNCH(LaneOutsideItsMask, 1, 32, 0, &third, out.data());
  EXPECT_THAT(third.error(), HasSubstr("is not in its own mask"));
}

TEST_P(SimtTest, NothingRunsAfterAnError) {
  HEXAD_LAUNCH(BarrierMissedByHalf, 1, 32, 0, &stream_);
  const std::string first = stream_.error();
  std::vector<int> out(32, -1);
  HEXAD_LAUNCH(WriteIndices, 1, 32, 0, &stream_, out.data());
  EXPECT_THAT(out, ElementsAreArray(std::vector<int>(32, -1)));
  EXPECT_EQ(stream_.error(), first);
}

TEST_P(SimtTest, ImpossibleLaunchIsReported) {
  HEXAD_LAUNCH(BarrierMissedByHalf, 1, 2048, 0, &stream_);
  EXPECT_THAT(stream_.error(), HasSubstr("not possible"));
  shim::Stream other(GetParam().order);
  HEXAD_LAUNCH(BarrierMissedByHalf, 0, 32, 0, &other);
  EXPECT_THAT(other.error(), HasSubstr("not possible"));
}

#if defined(__SANITIZE_ADDRESS__)
__global__ void OverrunShared() {
  HEXAD_SHARED(int, tile, 32);
  volatile int* escaped = tile;
  escaped[threadIdx.x + 1] = 1;
}

__global__ void OverrunDynamic() {
  HEXAD_SHARED_DYNAMIC(int, tile);
  volatile int* escaped = tile;
  escaped[threadIdx.x] = 1;
}

using SimtDeathTest = SimtTest;

INSTANTIATE_TEST_SUITE_P(Orders, SimtDeathTest,
                         ::testing::Values(Order{shim::ThreadOrder::kForward, 0}));

TEST_P(SimtDeathTest, SanitizerSeesOverrunsOfSharedMemory) {
  EXPECT_DEATH(HEXAD_LAUNCH(OverrunShared, 1, 32, 0, &stream_), "heap-buffer-overflow");
  EXPECT_DEATH(HEXAD_LAUNCH(OverrunDynamic, 1, 32, 31 * sizeof(int), &stream_),
               "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace hexad::cuda
