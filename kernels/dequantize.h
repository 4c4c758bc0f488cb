#pragma once

// GGUF rows to floats, bit-exactly as ggml's reference (gguf-py's quants.py): what an embedding
// look-up, a conversion and a test need. Matrix products use PackedMatrix instead.

#include <cstdint>

#include "kernels/types.h"

namespace hexad {

// Every DType is supported today; ask before use, because a format may be added to DType first.
bool CanDequantize(DType type);

// row: RowBytes(type, values) bytes in file order, any alignment. out: [values].
// REQUIRES: CanDequantize(type), values a multiple of Info(type).block_values.
// The row of token t of an embedding [vocab, dim] is at data + t * RowBytes(type, dim).
void DequantizeRow(DType type, const void* row, int64_t values, float* out);

// IEEE half and bfloat16, round to nearest even; NaN stays NaN.
float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);
float Bfloat16ToFloat(uint16_t value);

}  // namespace hexad
