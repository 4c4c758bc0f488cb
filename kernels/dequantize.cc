#include "kernels/dequantize.h"

#include <bit>
#include <cstring>

#include "kernels/quant_block.h"

namespace hexad {
namespace {

void DequantizeBlocks(DType type, const uint8_t* row, int64_t values, float* out) {
  const DTypeInfo& info = Info(type);
  const int group = QuantGroup(type);
  const bool has_min = HasMin(type);
  QuantBlock block;
  for (int64_t begin = 0; begin < values; begin += info.block_values, row += info.block_bytes) {
    UnpackQuantBlock(type, row, block);
    for (int i = 0; i < info.block_values; ++i) {
      const float product = block.scale[i / group] * static_cast<float>(block.q[i]);
      out[begin + i] = has_min ? product + block.min[i / group] : product;
    }
  }
}

template <typename Convert>
void ConvertHalves(const uint8_t* row, int64_t values, float* out, Convert convert) {
  for (int64_t i = 0; i < values; ++i) {
    uint16_t bits;
    std::memcpy(&bits, row + 2 * i, sizeof(bits));
    out[i] = convert(bits);
  }
}

}  // namespace

bool CanDequantize(DType type) { return type <= DType::kIQ4_NL; }

void DequantizeRow(DType type, const void* row, int64_t values, float* out) {
  const uint8_t* bytes = static_cast<const uint8_t*>(row);
  switch (type) {
    case DType::kF32:
      std::memcpy(out, row, static_cast<size_t>(values) * sizeof(float));
      break;
    case DType::kF16:
      ConvertHalves(bytes, values, out, HalfToFloat);
      break;
    case DType::kBF16:
      ConvertHalves(bytes, values, out, Bfloat16ToFloat);
      break;
    default:
      DequantizeBlocks(type, bytes, values, out);
      break;
  }
}

float Bfloat16ToFloat(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 |
                                (magnitude > 0x7c00 ? 0x400000u : 0u));
  }
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;  // zero, subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  }
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // the result is subnormal: let an addition round to 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace hexad
