#pragma once

// One block of a quantised GGUF row taken apart into integers and scales, the one place that knows
// the bit layouts: dequantisation and packing both start here.

#include <cstdint>

#include "kernels/types.h"

namespace hexad {

// Value i of the block is scale[i / group] * q[i] + min[i / group].
struct QuantBlock {
  int8_t q[256];
  float scale[16];
  float min[16];  // zero in formats without
  // What scale and min are products of; multipliers are 1 in the 32-value formats:
  // scale = HalfToFloat(d) * scale_multiplier, min = HalfToFloat(m) * min_multiplier, which the
  // 256-value formats subtract: there min is its negative.
  uint16_t d;
  uint16_t m;
  int8_t scale_multiplier[16];
  int8_t min_multiplier[16];
};

// Values that share a scale: 32 or 16; 0 for F32, F16, BF16.
int QuantGroup(DType type);
bool HasMin(DType type);

// block: Info(type).block_bytes bytes, any alignment. REQUIRES: QuantGroup(type) > 0.
void UnpackQuantBlock(DType type, const void* block, QuantBlock& out);

}  // namespace hexad
