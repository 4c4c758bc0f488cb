#pragma once

// What lets a kernel be compiled by nvcc for a GPU and by any C++ compiler for kernels/shim.
// Rules for kernels that include it:
//   - shared memory by HEXAD_SHARED and HEXAD_SHARED_DYNAMIC, of plain data only;
//   - launches by HEXAD_LAUNCH;
//   - warp operations with the mask and the width written out, by all lanes of the mask;
//   - no return before a barrier, no barrier that part of a block misses;
//   - no waiting of one block for another, no reliance on lanes running in step.

#include <cstdint>

#ifdef __CUDACC__

#include <cuda_runtime.h>

namespace hexad::cuda {
using Stream = cudaStream_t;
}  // namespace hexad::cuda

#define HEXAD_SHARED(type, name, count) __shared__ type name[count]
#define HEXAD_SHARED_DYNAMIC(type, name)                                      \
  extern __shared__ __align__(16) unsigned char hexad_dynamic_shared_bytes[]; \
  type* const name = reinterpret_cast<type*>(hexad_dynamic_shared_bytes)
#define HEXAD_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)

#else

#include <cmath>

#include "kernels/shim/simt.h"

namespace hexad::cuda {
using Stream = shim::Stream*;
}  // namespace hexad::cuda

#define HEXAD_SHARED(type, name, count)              \
  type(&name)[count] = *static_cast<type(*)[count]>( \
      ::hexad::shim::SharedArray(sizeof(type[count]), __FILE__, __LINE__))
#define HEXAD_SHARED_DYNAMIC(type, name) \
  type* const name = static_cast<type*>(::hexad::shim::SharedDynamic())
   // Template arguments of a kernel that hold a comma need parentheses around the name.
#define HEXAD_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  (stream)->Launch(grid, block, shared_bytes, [&] { kernel(__VA_ARGS__); })

#endif

namespace hexad::cuda {

inline constexpr int kWarp = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

}  // namespace hexad::cuda
