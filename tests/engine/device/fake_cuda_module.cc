// Stands for libhexad_cuda.so in tests: its "device" memory is the host's. HEXAD_FAKE_* chooses
// what is wrong with it.

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "engine/device/cuda_abi.h"

namespace {

thread_local const char* last_error = "";

[[maybe_unused]] HexadCudaResult Fail(HexadCudaResult result, const char* text) {
  last_error = text;
  return result;
}

const char* LastError() { return last_error; }

HexadCudaResult DeviceCount(int32_t* count) {
#if defined(HEXAD_FAKE_NO_DRIVER)
  return Fail(HEXAD_CUDA_NO_DRIVER, "fake error 35");
#elif defined(HEXAD_FAKE_NO_DEVICE)
  return Fail(HEXAD_CUDA_NO_DEVICE, "fake error 100");
#elif defined(HEXAD_FAKE_FAILING)
  return Fail(HEXAD_CUDA_FAILED, "fake error 999");
#else
  *count = 2;
  return HEXAD_CUDA_OK;
#endif
}

HexadCudaResult Device(int32_t device, HexadCudaDevice* out) {
  std::memset(out, 0, sizeof(*out));
  std::memset(out->name, 'x', sizeof(out->name));  // not terminated: the loader must not care
  out->compute_major = 9;
  out->multiprocessors = 100 + device;
  out->memory_bytes = uint64_t{1} << 30;
  return HEXAD_CUDA_OK;
}

HexadCudaResult Allocate(int32_t, uint64_t bytes, void** out) {
  if (bytes > uint64_t{1} << 30) return Fail(HEXAD_CUDA_OUT_OF_MEMORY, "fake memory is full");
  *out = std::malloc(bytes);
  return HEXAD_CUDA_OK;
}
HexadCudaResult Release(int32_t, void* memory) {
  std::free(memory);
  return HEXAD_CUDA_OK;
}
HexadCudaResult Copy(int32_t, void* to, const void* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
  return HEXAD_CUDA_OK;
}
HexadCudaResult RmsNorm(int32_t, const HexadCudaRmsNorm* a) {
  if (a->size <= 0) return Fail(HEXAD_CUDA_INVALID, "size below 1");
  for (int32_t row = 0; row < a->rows; ++row) {
    float sum = 0;
    for (int32_t i = 0; i < a->size; ++i) sum += a->x[row * a->size + i] * a->x[row * a->size + i];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(a->size) + a->epsilon);
    for (int32_t i = 0; i < a->size; ++i) {
      a->out[row * a->size + i] = a->x[row * a->size + i] * scale * a->weight[i];
    }
  }
  return HEXAD_CUDA_OK;
}
HexadCudaResult Synchronize(int32_t) { return HEXAD_CUDA_OK; }

#if defined(HEXAD_FAKE_OLD_VERSION)
constexpr uint32_t kVersion = HEXAD_CUDA_ABI_VERSION + 41;
#else
constexpr uint32_t kVersion = HEXAD_CUDA_ABI_VERSION;
#endif

[[maybe_unused]] const HexadCudaTable table = {
    kVersion,    sizeof(HexadCudaTable),
    "fake",      LastError,
    DeviceCount, Device,
    Allocate,    Release,
    Copy,        Copy,
    RmsNorm,     Synchronize,
};

}  // namespace

#if !defined(HEXAD_FAKE_NO_ENTRY)
extern "C" const HexadCudaTable* hexad_cuda_module(void) { return &table; }
#endif
