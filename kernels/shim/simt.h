#pragma once

// Runs CUDA C++ kernels on the CPU, one fiber per thread of a block, blocks one after the other.
// It proves indexing, barriers, shuffles and numerics; not speed, and not races that need a weak
// memory model. kernels/cuda/portable.h includes it where no CUDA compiler is at work; kernels
// include that header and nothing here by name.
//
// What it checks beyond the results:
//   - __syncthreads() reached by all threads of the block, at one place in the source;
//   - warp operations with a full agreed mask, no exited lane, no source outside the mask;
//   - shared memory is poisoned (all bits set: NaN) at block start, its bounds are the heap's, so
//     that ASan sees overruns, and it is gone at block end.
// A broken rule ends the launch and is reported by Stream::error(); no kernel code runs after it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace hexad::shim {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim3(unsigned x_in = 1, unsigned y_in = 1, unsigned z_in = 1)
      : x(x_in), y(y_in), z(z_in) {}
};

enum class ThreadOrder : uint8_t { kForward, kReverse, kRandom };

// Stands where a cudaStream_t stands: the order in which threads and blocks run, and the first
// error. A launch on a stream with an error does nothing. One thread at a time.
class Stream final {
 public:
  explicit Stream(ThreadOrder order, uint64_t seed = 0);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Empty while all is well.
  const std::string& error() const;

  // Runs `kernel` once per thread of grid x block.
  void Launch(Dim3 grid, Dim3 block, size_t shared_bytes, const std::function<void()>& kernel);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// --- Called from kernel code, through the names of CUDA ------------------------------------------

struct ThreadIndices {
  Dim3 thread, block, block_dim, grid_dim;
};
const ThreadIndices& Indices();

void SyncThreads(const char* file, int line);
void SyncWarp(uint32_t mask, const char* file, int line);
// Every lane of `mask` posts `value`; gives what `source_lane` posted. Out-of-range sources give
// the lane's own value, as on the device.
uint64_t Exchange(uint32_t mask, uint64_t value, int source_lane, const char* operation,
                  const char* file, int line);
uint32_t Ballot(uint32_t mask, bool predicate, const char* file, int line);
int LaneId();

// The shared array that is declared at this place in the source; made at its first use in a block.
void* SharedArray(size_t bytes, const char* file, int line);
void* SharedDynamic();

template <typename T>
T Shuffle(uint32_t mask, T value, int source_lane, const char* operation, const char* file,
          int line) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(mask, bits, source_lane, operation, file, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Lanes of a sub-warp of `width` that lie outside it read their own value.
inline int DownSource(int delta, int width) {
  const int lane = LaneId();
  return (lane % width) + delta < width ? lane + delta : lane;
}
inline int UpSource(int delta, int width) {
  const int lane = LaneId();
  return (lane % width) - delta >= 0 ? lane - delta : lane;
}
inline int XorSource(int bits, int width) {
  const int lane = LaneId();
  return (lane ^ bits) / width <= lane / width ? lane ^ bits : lane;
}
inline int IndexSource(int index, int width) {
  const int lane = LaneId();
  return lane / width * width + (index % width + width) % width;
}

}  // namespace hexad::shim

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (::hexad::shim::Indices().thread)
#define blockIdx (::hexad::shim::Indices().block)
#define blockDim (::hexad::shim::Indices().block_dim)
#define gridDim (::hexad::shim::Indices().grid_dim)

#define __syncthreads() ::hexad::shim::SyncThreads(__FILE__, __LINE__)
#define __syncwarp(mask) ::hexad::shim::SyncWarp(mask, __FILE__, __LINE__)
#define __ballot_sync(mask, predicate) \
  ::hexad::shim::Ballot(mask, static_cast<bool>(predicate), __FILE__, __LINE__)
#define HEXAD_SHIM_SHUFFLE(operation, source, mask, value, argument, width)                        \
  ::hexad::shim::Shuffle(mask, value, ::hexad::shim::source(argument, width), operation, __FILE__, \
                         __LINE__)
// The width is written out in kernels: a macro has no default argument.
#define __shfl_sync(mask, value, lane, width) \
  HEXAD_SHIM_SHUFFLE("__shfl_sync", IndexSource, mask, value, lane, width)
#define __shfl_down_sync(mask, value, delta, width) \
  HEXAD_SHIM_SHUFFLE("__shfl_down_sync", DownSource, mask, value, delta, width)
#define __shfl_up_sync(mask, value, delta, width) \
  HEXAD_SHIM_SHUFFLE("__shfl_up_sync", UpSource, mask, value, delta, width)
#define __shfl_xor_sync(mask, value, bits, width) \
  HEXAD_SHIM_SHUFFLE("__shfl_xor_sync", XorSource, mask, value, bits, width)

namespace hexad::shim {
// Blocks and threads run one at a time, so that a plain read-modify-write is atomic.
template <typename T>
T AtomicAdd(T* address, T value) {
  const T old = *address;
  *address = old + value;
  return old;
}
}  // namespace hexad::shim
#define atomicAdd(address, value) ::hexad::shim::AtomicAdd(address, value)
