// Panels for int8 activations, see packed_layout.h.

#include <cstring>

#include "kernels/cpu/pack.h"
#include "kernels/iq4_codebook.h"
#include "kernels/quant_block.h"

namespace hexad::cpu {
namespace {

constexpr int kSuper = 256;
constexpr int kBlock = 32;
constexpr int kLine = 2 * kPanelRows;  // 16 halves

int64_t BlockBytes(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQuadU2:
      return kPanelRows * kBlock * 2 / 8;
    case WeightKind::kQuadU3:
      return kPanelRows * kBlock * 3 / 8;
    case WeightKind::kQuadU4:
    case WeightKind::kQuadCode:
      return kPanelRows * kBlock * 4 / 8;
    case WeightKind::kQuadU5:
      return kPanelRows * kBlock * 5 / 8;
    case WeightKind::kQuadU6:
      return kPanelRows * kBlock * 6 / 8;
    default:
      return kPanelRows * kBlock;
  }
}

int CodeOf(int8_t value) {
  int code = 0;
  while (code < 15 && kIq4Codebook[code] != value) ++code;
  return code;
}

// One value into its zeroed block. i: of its row in the block.
void PutQuant(const PackedFormat& format, int i, int row, int8_t q, uint8_t* block) {
  const int quad = i / 4;
  const int lane = row * 4 + i % 4;
  const auto put = [&](int byte, int bits) {
    block[byte] = static_cast<uint8_t>(block[byte] | bits);
  };
  const int stored = format.kind == WeightKind::kQuadCode ? CodeOf(q) : q + format.bias;
  const auto put_bits = [&](int line, int to, int from, int count) {
    put(line * 64 + lane, (stored >> from & ((1 << count) - 1)) << to);
  };
  switch (format.kind) {
    case WeightKind::kQuadU2:
      return put_bits(quad / 4, quad % 4 * 2, 0, 2);
    case WeightKind::kQuadU3:
      if (quad < 6) return put_bits(quad / 2, quad % 2 * 3, 0, 3);
      put_bits(quad == 6 ? 0 : 1, quad == 6 ? 6 : 7, 0, quad == 6 ? 2 : 1);
      return put_bits(quad == 6 ? 1 : 2, 6, quad == 6 ? 2 : 1, quad == 6 ? 1 : 2);
    case WeightKind::kQuadU4:
    case WeightKind::kQuadCode:
      return put_bits(quad / 2, quad % 2 * 4, 0, 4);
    case WeightKind::kQuadU5:
      if (quad < 5) return put_bits(quad, 0, 0, 5);
      put_bits(quad * 2 - 10, 5, 0, 3);
      if (quad < 7) return put_bits(quad * 2 - 9, 5, 3, 2);
      put_bits(1, 7, 3, 1);
      return put_bits(3, 7, 4, 1);
    case WeightKind::kQuadU6:
      if (quad % 4 < 3) return put_bits(quad / 4 * 3 + quad % 4, 0, 0, 6);
      for (int j = 0; j < 3; ++j) put_bits(quad / 4 * 3 + j, 6, 2 * j, 2);
      return;
    default:
      block[quad * 64 + lane] = static_cast<uint8_t>(q);
  }
}

void PutMultipliers(const PackedFormat& format, const QuantBlock& block, int row, uint8_t* lines) {
  const int groups = kSuper / format.group;
  for (int g = 0; g < groups; ++g, lines += kPanelRows) {
    const int scale = block.scale_multiplier[g], min = block.min_multiplier[g];
    if (format.kind == WeightKind::kQuadU2) {
      lines[row] = static_cast<uint8_t>(scale | min << 4);
      continue;
    }
    lines[row] = static_cast<uint8_t>(scale);
    if (format.has_min) lines[groups * kPanelRows + row] = static_cast<uint8_t>(min);
  }
}

void PutHalf(uint16_t half, int row, uint8_t* line) { std::memcpy(line + 2 * row, &half, 2); }

}  // namespace

ChunkLayout ChunkLayoutOf(const PackedFormat& format) {
  ChunkLayout layout{};
  layout.values = format.multipliers ? kSuper : kBlock;
  layout.mins = kLine;
  layout.multipliers = layout.mins + (format.has_min ? kLine : 0);
  layout.quants = layout.multipliers;
  if (format.multipliers) {
    const bool apart = format.has_min && format.kind != WeightKind::kQuadU2;
    layout.quants += int64_t{kSuper} / format.group * kPanelRows * (apart ? 2 : 1);
  }
  layout.block_bytes = BlockBytes(format.kind);
  layout.bytes = layout.quants + layout.values / kBlock * layout.block_bytes;
  return layout;
}

void PackQuadPanel(DType type, const PackedFormat& format, const uint8_t* rows, int count,
                   int64_t in, uint8_t* panel) {
  const ChunkLayout layout = ChunkLayoutOf(format);
  const DTypeInfo& info = Info(type);  // whose blocks are chunks
  for (int row = 0; row < count; ++row) {
    uint8_t* chunk = panel;
    for (int64_t k = 0; k < in; k += layout.values, chunk += layout.bytes) {
      QuantBlock block;
      UnpackQuantBlock(type, rows, block);
      rows += info.block_bytes;
      PutHalf(block.d, row, chunk);
      if (format.has_min) PutHalf(block.m, row, chunk + layout.mins);
      if (format.multipliers) PutMultipliers(format, block, row, chunk + layout.multipliers);
      for (int i = 0; i < layout.values; ++i) {
        uint8_t* quants = chunk + layout.quants + i / kBlock * layout.block_bytes;
        PutQuant(format, i % kBlock, row, block.q[i], quants);
      }
    }
  }
}

PackedFormat QuadFormatOf(DType type) {
  PackedFormat format{WeightKind::kQuadS8, QuantGroup(type), 0, HasMin(type),
                      Info(type).block_values == kSuper};
  switch (type) {
    case DType::kQ4_0:
      format.bias = 8;
      [[fallthrough]];
    case DType::kQ4_1:
    case DType::kQ4_K:
      format.kind = WeightKind::kQuadU4;
      break;
    case DType::kQ2_K:
      format.kind = WeightKind::kQuadU2;
      break;
    case DType::kQ3_K:
      format.kind = WeightKind::kQuadU3;
      format.bias = 4;
      break;
    case DType::kQ5_0:
      format.bias = 16;
      [[fallthrough]];
    case DType::kQ5_1:
    case DType::kQ5_K:
      format.kind = WeightKind::kQuadU5;
      break;
    case DType::kQ6_K:
      format.kind = WeightKind::kQuadU6;
      format.bias = 32;
      break;
    case DType::kIQ4_NL:
      format.kind = WeightKind::kQuadCode;
      break;
    default:
      break;
  }
  return format;
}

}  // namespace hexad::cpu
