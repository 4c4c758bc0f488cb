#include "kernels/quant_block.h"

#include <cstring>

#include "kernels/dequantize.h"
#include "kernels/iq4_codebook.h"

namespace hexad {
namespace {

uint16_t Load16(const uint8_t* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

uint32_t Load32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// 32 values: the low nibbles of 16 bytes, then their high nibbles.
void UnpackNibbles(const uint8_t* bytes, int offset, int8_t* q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = static_cast<int8_t>((bytes[i] & 15) - offset);
    q[i + 16] = static_cast<int8_t>((bytes[i] >> 4) - offset);
  }
}

// The same with a fifth bit from `high`.
void UnpackFiveBits(const uint8_t* bytes, uint32_t high, int offset, int8_t* q) {
  UnpackNibbles(bytes, 0, q);
  for (int i = 0; i < 32; ++i) {
    q[i] = static_cast<int8_t>((q[i] | ((high >> i & 1) << 4)) - offset);
  }
}

// Eight 6-bit scales and eight 6-bit mins in 12 bytes, of Q4_K and Q5_K.
void UnpackScalesAndMins(const uint8_t* s, QuantBlock& out) {
  for (int i = 0; i < 4; ++i) {
    out.scale_multiplier[i] = static_cast<int8_t>(s[i] & 63);
    out.scale_multiplier[i + 4] = static_cast<int8_t>((s[8 + i] & 15) | (s[i] >> 2 & 48));
    out.min_multiplier[i] = static_cast<int8_t>(s[4 + i] & 63);
    out.min_multiplier[i + 4] = static_cast<int8_t>((s[8 + i] >> 4) | (s[4 + i] >> 2 & 48));
  }
}

void UnpackQ2K(const uint8_t* block, QuantBlock& out) {
  out.d = Load16(block + 80);
  out.m = Load16(block + 82);
  for (int i = 0; i < 16; ++i) {
    out.scale_multiplier[i] = static_cast<int8_t>(block[i] & 15);
    out.min_multiplier[i] = static_cast<int8_t>(block[i] >> 4);
  }
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, shift = i % 128 / 32 * 2;
    out.q[i] = static_cast<int8_t>(block[16 + half * 32 + i % 32] >> shift & 3);
  }
}

void UnpackQ3K(const uint8_t* block, QuantBlock& out) {
  const uint8_t* high = block;
  const uint8_t* low = block + 32;
  const uint8_t* scales = block + 96;
  out.d = Load16(block + 108);
  for (int i = 0; i < 16; ++i) {
    const int low4 = scales[i % 8] >> (i / 8 * 4) & 15;
    const int high2 = scales[8 + i % 4] >> (i / 4 * 2) & 3;
    out.scale_multiplier[i] = static_cast<int8_t>((low4 | high2 << 4) - 32);
  }
  for (int i = 0; i < 256; ++i) {
    const int q = low[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int bit = high[i % 32] >> (i / 32) & 1;
    out.q[i] = static_cast<int8_t>(q - (bit != 0 ? 0 : 4));  // a clear bit subtracts
  }
}

void UnpackQ4K(const uint8_t* block, QuantBlock& out) {
  out.d = Load16(block);
  out.m = Load16(block + 2);
  UnpackScalesAndMins(block + 4, out);
  for (int i = 0; i < 256; ++i) {
    out.q[i] = static_cast<int8_t>(block[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15);
  }
}

void UnpackQ5K(const uint8_t* block, QuantBlock& out) {
  out.d = Load16(block);
  out.m = Load16(block + 2);
  UnpackScalesAndMins(block + 4, out);
  for (int i = 0; i < 256; ++i) {
    const int low = block[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    out.q[i] = static_cast<int8_t>(low | (block[16 + i % 32] >> (i / 32) & 1) << 4);
  }
}

void UnpackQ6K(const uint8_t* block, QuantBlock& out) {
  out.d = Load16(block + 208);
  for (int i = 0; i < 16; ++i) out.scale_multiplier[i] = static_cast<int8_t>(block[192 + i]);
  for (int i = 0; i < 256; ++i) {
    const int low = block[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int high = block[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    out.q[i] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

// The 32-value formats: no multipliers.
void UnpackSmall(DType type, const uint8_t* block, QuantBlock& out) {
  out.scale_multiplier[0] = 1;
  out.min_multiplier[0] = 1;
  out.d = Load16(block);
  switch (type) {
    case DType::kQ8_0:
      std::memcpy(out.q, block + 2, 32);
      break;
    case DType::kQ4_0:
      UnpackNibbles(block + 2, 8, out.q);
      break;
    case DType::kQ4_1:
      out.m = Load16(block + 2);
      UnpackNibbles(block + 4, 0, out.q);
      break;
    case DType::kQ5_0:
      UnpackFiveBits(block + 6, Load32(block + 2), 16, out.q);
      break;
    case DType::kQ5_1:
      out.m = Load16(block + 2);
      UnpackFiveBits(block + 8, Load32(block + 4), 0, out.q);
      break;
    default:
      UnpackNibbles(block + 2, 0, out.q);
      for (int i = 0; i < 32; ++i) out.q[i] = kIq4Codebook[out.q[i]];
      break;
  }
}

}  // namespace

int QuantGroup(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return 0;
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kQ6_K:
      return 16;
    default:
      return 32;
  }
}

bool HasMin(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ2_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return true;
    default:
      return false;
  }
}

void UnpackQuantBlock(DType type, const void* data, QuantBlock& out) {
  const uint8_t* block = static_cast<const uint8_t*>(data);
  out.m = 0;
  std::memset(out.min_multiplier, 0, sizeof(out.min_multiplier));
  switch (type) {
    case DType::kQ2_K:
      UnpackQ2K(block, out);
      break;
    case DType::kQ3_K:
      UnpackQ3K(block, out);
      break;
    case DType::kQ4_K:
      UnpackQ4K(block, out);
      break;
    case DType::kQ5_K:
      UnpackQ5K(block, out);
      break;
    case DType::kQ6_K:
      UnpackQ6K(block, out);
      break;
    default:
      UnpackSmall(type, block, out);
      break;
  }
  const float d = HalfToFloat(out.d), m = HalfToFloat(out.m);
  const bool subtract = Info(type).block_values == 256;
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): required to be a type with groups.
  const int groups = Info(type).block_values / QuantGroup(type);
  for (int i = 0; i < groups; ++i) {
    out.scale[i] = d * static_cast<float>(out.scale_multiplier[i]);
    const float min = m * static_cast<float>(out.min_multiplier[i]);
    out.min[i] = subtract ? -min : min;
  }
}

}  // namespace hexad
