// libhexad_cuda.so: the function table of engine/device/cuda_abi.h over the CUDA runtime. It links
// the runtime statically and never libcuda, so that it loads where no driver is installed and says
// so.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "engine/device/cuda_abi.h"
#include "kernels/cuda/rms_norm.cuh"

namespace {

thread_local char last_error[512] = "";

HexadCudaResult Fail(HexadCudaResult result, const char* call, const char* reason) {
  std::snprintf(last_error, sizeof(last_error), "%s: %s", call, reason);
  return result;
}

HexadCudaResult Check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return HEXAD_CUDA_OK;
  cudaGetLastError();  // or the next call would report it again
  char reason[256];
  std::snprintf(reason, sizeof(reason), "%s (CUDA error %d)", cudaGetErrorString(error),
                static_cast<int>(error));
  switch (error) {
    case cudaErrorInsufficientDriver:
      return Fail(HEXAD_CUDA_NO_DRIVER, call, reason);
    case cudaErrorNoDevice:
      return Fail(HEXAD_CUDA_NO_DEVICE, call, reason);
    case cudaErrorMemoryAllocation:
      return Fail(HEXAD_CUDA_OUT_OF_MEMORY, call, reason);
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
      return Fail(HEXAD_CUDA_INVALID, call, reason);
    default:
      return Fail(HEXAD_CUDA_FAILED, call, reason);
  }
}

#define HEXAD_CUDA_TRY(call)                           \
  do {                                                 \
    const HexadCudaResult result = Check(call, #call); \
    if (result != HEXAD_CUDA_OK) return result;        \
  } while (false)

const char* LastError() { return last_error; }

HexadCudaResult DeviceCount(int32_t* count) {
  int found = 0;
  HEXAD_CUDA_TRY(cudaGetDeviceCount(&found));
  if (found == 0) return Fail(HEXAD_CUDA_NO_DEVICE, "cudaGetDeviceCount", "no device");
  *count = found;
  return HEXAD_CUDA_OK;
}

HexadCudaResult Device(int32_t device, HexadCudaDevice* out) {
  cudaDeviceProp properties;
  HEXAD_CUDA_TRY(cudaGetDeviceProperties(&properties, device));
  std::memset(out, 0, sizeof(*out));
  std::snprintf(out->name, sizeof(out->name), "%s", properties.name);
  out->compute_major = properties.major;
  out->compute_minor = properties.minor;
  out->multiprocessors = properties.multiProcessorCount;
  out->shared_bytes_per_block = static_cast<int32_t>(properties.sharedMemPerBlockOptin);
  out->memory_bytes = properties.totalGlobalMem;
  return HEXAD_CUDA_OK;
}

HexadCudaResult Allocate(int32_t device, uint64_t bytes, void** out) {
  if (bytes == 0) return Fail(HEXAD_CUDA_INVALID, "allocate", "no bytes asked for");
  HEXAD_CUDA_TRY(cudaSetDevice(device));
  HEXAD_CUDA_TRY(cudaMalloc(out, bytes));
  return HEXAD_CUDA_OK;
}

HexadCudaResult Release(int32_t device, void* memory) {
  HEXAD_CUDA_TRY(cudaSetDevice(device));
  HEXAD_CUDA_TRY(cudaFree(memory));
  return HEXAD_CUDA_OK;
}

HexadCudaResult CopyToDevice(int32_t device, void* to, const void* from, uint64_t bytes) {
  HEXAD_CUDA_TRY(cudaSetDevice(device));
  HEXAD_CUDA_TRY(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  // From pageable memory cudaMemcpy may return before the last bytes have arrived.
  HEXAD_CUDA_TRY(cudaStreamSynchronize(nullptr));
  return HEXAD_CUDA_OK;
}

HexadCudaResult CopyToHost(int32_t device, void* to, const void* from, uint64_t bytes) {
  HEXAD_CUDA_TRY(cudaSetDevice(device));
  HEXAD_CUDA_TRY(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  return HEXAD_CUDA_OK;
}

HexadCudaResult RmsNorm(int32_t device, const HexadCudaRmsNorm* a) {
  if (a->rows < 0 || a->size <= 0) {
    return Fail(HEXAD_CUDA_INVALID, "rms_norm", "rows below 0 or size below 1");
  }
  HEXAD_CUDA_TRY(cudaSetDevice(device));
  hexad::cuda::RmsNorm(nullptr, a->x, a->weight, a->out, a->rows, a->size, a->epsilon);
  HEXAD_CUDA_TRY(cudaGetLastError());
  return HEXAD_CUDA_OK;
}

HexadCudaResult Synchronize(int32_t device) {
  HEXAD_CUDA_TRY(cudaSetDevice(device));
  HEXAD_CUDA_TRY(cudaDeviceSynchronize());
  return HEXAD_CUDA_OK;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const HexadCudaTable* hexad_cuda_module(void) {
  static const HexadCudaTable table = {
      HEXAD_CUDA_ABI_VERSION,
      sizeof(HexadCudaTable),
      HEXAD_CUDA_BUILD,
      LastError,
      DeviceCount,
      Device,
      Allocate,
      Release,
      CopyToDevice,
      CopyToHost,
      RmsNorm,
      Synchronize,
  };
  return &table;
}
