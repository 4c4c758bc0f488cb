#pragma once

// Number formats of weights and KV. The block formats are those of GGUF files: `block_values`
// consecutive values of a row share `block_bytes` bytes.

#include <cstdint>

namespace hexad {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
};

// What multiplies quantised weights, see matmul.h. F32, F16 and BF16 weights always meet fp32.
enum class Activations : uint8_t { kF32, kInt8 };

struct DTypeInfo {
  const char* name;
  int32_t block_values;
  int32_t block_bytes;
};

// Static table; every DType has an entry.
const DTypeInfo& Info(DType type);

// Bytes of one row of `values` values. REQUIRES: values is a multiple of block_values.
inline int64_t RowBytes(DType type, int64_t values) {
  const DTypeInfo& info = Info(type);
  return values / info.block_values * info.block_bytes;
}

}  // namespace hexad
