#pragma once

// The C interface between hexad and libhexad_cuda.so, which is loaded at run time and may be
// absent. Plain C: the module is built by another compiler with another runtime, and may be older
// or newer than the daemon that opens it.
//
// Rules. Functions return a HexadCudaResult, throw nothing, and may be called from any thread.
// last_error() speaks of the calling thread's last failed call. Device pointers are opaque to the
// host. Any change to these structures or meanings raises HEXAD_CUDA_ABI_VERSION; the first two
// fields of the table stay as they are in every version.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEXAD_CUDA_ABI_VERSION 1u
#define HEXAD_CUDA_ENTRY_NAME "hexad_cuda_module"

typedef int32_t HexadCudaResult;
enum {
  HEXAD_CUDA_OK = 0,
  HEXAD_CUDA_NO_DRIVER = 1,      // cudaErrorInsufficientDriver (35): none, or older than the module
  HEXAD_CUDA_NO_DEVICE = 2,      // cudaErrorNoDevice (100)
  HEXAD_CUDA_OUT_OF_MEMORY = 3,  // of the device
  HEXAD_CUDA_INVALID = 4,        // an argument that no device could serve
  HEXAD_CUDA_FAILED = 5          // anything else: the device is not to be trusted any more
};

typedef struct HexadCudaDevice {
  char name[256];  // zero-terminated
  int32_t compute_major;
  int32_t compute_minor;
  int32_t multiprocessors;
  int32_t shared_bytes_per_block;  // with opt-in
  uint64_t memory_bytes;
} HexadCudaDevice;

// All pointers are to device memory of `device`.
typedef struct HexadCudaRmsNorm {
  const float* x;       // [rows, size]
  const float* weight;  // [size]
  float* out;           // [rows, size], may be x
  int32_t rows;
  int32_t size;
  float epsilon;
} HexadCudaRmsNorm;

typedef struct HexadCudaTable {
  uint32_t abi_version;  // HEXAD_CUDA_ABI_VERSION of the module's build
  uint32_t table_bytes;  // sizeof(HexadCudaTable) of the module's build
  const char* build;     // for logs: toolkit version and architectures

  const char* (*last_error)(void);  // never null; valid until the thread's next call
  HexadCudaResult (*device_count)(int32_t* count);
  HexadCudaResult (*device)(int32_t device, HexadCudaDevice* out);
  HexadCudaResult (*allocate)(int32_t device, uint64_t bytes, void** out);  // bytes > 0
  HexadCudaResult (*release)(int32_t device, void* memory);                 // null is no error
  // Synchronous: when they return, earlier work of the device is done and the bytes are there.
  HexadCudaResult (*copy_to_device)(int32_t device, void* to, const void* from, uint64_t bytes);
  HexadCudaResult (*copy_to_host)(int32_t device, void* to, const void* from, uint64_t bytes);
  HexadCudaResult (*rms_norm)(int32_t device, const HexadCudaRmsNorm* arguments);  // asynchronous
  HexadCudaResult (*synchronize)(int32_t device);
} HexadCudaTable;

// The one exported symbol, HEXAD_CUDA_ENTRY_NAME. Never null, valid for the process's life.
typedef const HexadCudaTable* (*HexadCudaEntry)(void);

#ifdef __cplusplus
}
#endif
