#include "kernels/cpu/pack.h"

#include <cstring>

#include "kernels/matmul.h"
#include "kernels/quant_block.h"

namespace hexad {
namespace cpu {
namespace {

constexpr int kSuper = 256;

int64_t QuantBytes(WeightKind kind, int64_t values) {
  switch (kind) {
    case WeightKind::kF32:
      return values * kPanelRows * 4;
    case WeightKind::kF16:
    case WeightKind::kBF16:
      return values * kPanelRows * 2;
    case WeightKind::kS8:
      return values * kPanelRows;
    case WeightKind::kU4:
      return values * kPanelRows / 2;
    default:
      return 0;  // kQuad*: see pack_int8.cc
  }
}

void PutQuant(const PackedFormat& format, int64_t k, int row, int8_t q, uint8_t* quants) {
  if (format.kind == WeightKind::kS8) {
    quants[k * kPanelRows + row] = static_cast<uint8_t>(q);
    return;
  }
  uint8_t& byte = quants[k / 8 * kPanelRows * 4 + row * 4 + k % 8 / 2];
  byte = static_cast<uint8_t>(byte | (q + format.bias) << (k % 2 * 4));
}

// Column `row` of an array of halves or bytes, 16 to a line.
void PutHalf(uint16_t half, int row, uint8_t* line) { std::memcpy(line + 2 * row, &half, 2); }

void PutScales(const PackedFormat& format, const QuantBlock& block, int groups, int64_t first_group,
               int row, uint8_t* scales) {
  const int width = (format.multipliers ? 1 : 2) * kPanelRows;
  const int stride = width * (format.has_min ? 2 : 1);
  for (int g = 0; g < groups; ++g) {
    uint8_t* line = scales + (first_group + g) * stride;
    if (format.multipliers) {
      line[row] = static_cast<uint8_t>(block.scale_multiplier[g]);
      if (format.has_min) line[width + row] = static_cast<uint8_t>(block.min_multiplier[g]);
    } else {
      PutHalf(block.d, row, line);
      if (format.has_min) PutHalf(block.m, row, line + width);
    }
  }
}

void PackQuantRow(DType type, const PackedFormat& format, const PanelLayout& layout,
                  const uint8_t* source, int64_t in, int row, uint8_t* panel) {
  const DTypeInfo& info = Info(type);
  QuantBlock block;
  for (int64_t k = 0; k < in; k += info.block_values, source += info.block_bytes) {
    UnpackQuantBlock(type, source, block);
    for (int i = 0; i < info.block_values; ++i) PutQuant(format, k + i, row, block.q[i], panel);
    PutScales(format, block, info.block_values / format.group, k / format.group, row,
              panel + layout.scales);
    if (!format.multipliers) continue;
    uint8_t* super = panel + layout.supers + k / kSuper * (format.has_min ? 64 : 32);
    PutHalf(block.d, row, super);
    if (format.has_min) PutHalf(block.m, row, super + 32);
  }
}

}  // namespace

PackedFormat FormatOf(DType type, Activations activations) {
  if (activations == Activations::kInt8) return QuadFormatOf(type);
  const bool super = Info(type).block_values == kSuper;
  switch (type) {
    case DType::kF32:
      return {WeightKind::kF32, 1, 0, false, false};
    case DType::kF16:
      return {WeightKind::kF16, 1, 0, false, false};
    case DType::kBF16:
      return {WeightKind::kBF16, 1, 0, false, false};
    case DType::kQ4_0:
      return {WeightKind::kU4, 32, 8, false, false};
    case DType::kQ3_K:
      return {WeightKind::kU4, 16, 4, false, super};
    case DType::kQ4_1:
    case DType::kQ2_K:
    case DType::kQ4_K:
      return {WeightKind::kU4, QuantGroup(type), 0, true, super};
    case DType::kQ8_0:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
    case DType::kQ6_K:
    case DType::kIQ4_NL:
      break;
  }
  return {WeightKind::kS8, QuantGroup(type), 0, HasMin(type), super};
}

PanelLayout LayoutOf(const PackedFormat& format, int64_t in) {
  const bool quantised = format.kind >= WeightKind::kS8;
  const int64_t planes = format.has_min ? 2 : 1;
  PanelLayout layout;
  layout.scales = QuantBytes(format.kind, in);
  layout.supers = layout.scales;
  if (quantised) {
    layout.supers += in / format.group * planes * kPanelRows * (format.multipliers ? 1 : 2);
  }
  layout.bytes = layout.supers;
  if (format.multipliers) layout.bytes += in / kSuper * planes * kPanelRows * 2;
  layout.bytes = (layout.bytes + 63) / 64 * 64;
  return layout;
}

int64_t PanelBytes(const PackedFormat& format, int64_t in) {
  if (format.kind < WeightKind::kQuadS8) return LayoutOf(format, in).bytes;
  const ChunkLayout chunk = ChunkLayoutOf(format);
  return (in / chunk.values * chunk.bytes + 63) / 64 * 64;
}

void PackPanel(DType type, const PackedFormat& format, const uint8_t* rows, int count, int64_t in,
               uint8_t* panel) {
  if (format.kind >= WeightKind::kQuadS8) {
    return PackQuadPanel(type, format, rows, count, in, panel);
  }
  const PanelLayout layout = LayoutOf(format, in);
  const int64_t row_bytes = RowBytes(type, in);
  for (int row = 0; row < count; ++row, rows += row_bytes) {
    if (QuantGroup(type) > 0) {
      PackQuantRow(type, format, layout, rows, in, row, panel);
      continue;
    }
    const int64_t size = Info(type).block_bytes;
    for (int64_t k = 0; k < in; ++k) {
      std::memcpy(panel + (k * kPanelRows + row) * size, rows + k * size, size);
    }
  }
}

}  // namespace cpu

PackedMatrix PackedMatrix::Pack(DType type, const void* rows, int64_t out, int64_t in,
                                ThreadTeam& team, Activations activations) {
  const int64_t panels = (out + cpu::kPanelRows - 1) / cpu::kPanelRows;
  if (QuantGroup(type) == 0) activations = Activations::kF32;
  const cpu::PackedFormat format = cpu::FormatOf(type, activations);
  const int64_t panel_bytes = cpu::PanelBytes(format, in);
  PackedMatrix matrix;
  matrix.type_ = type;
  matrix.activations_ = activations;
  matrix.out_ = out;
  matrix.in_ = in;
  matrix.data_ = HugeBuffer(static_cast<size_t>(panels * panel_bytes));
  uint8_t* data = reinterpret_cast<uint8_t*>(matrix.data_.data());
  const uint8_t* source = static_cast<const uint8_t*>(rows);
  const int64_t panel_source_bytes = RowBytes(type, in) * cpu::kPanelRows;
  team.ParallelFor(panels, [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t count = out - p * cpu::kPanelRows;
      cpu::PackPanel(type, format, source + p * panel_source_bytes,
                     static_cast<int>(count < cpu::kPanelRows ? count : cpu::kPanelRows), in,
                     data + p * panel_bytes);
    }
  });
  return matrix;
}

}  // namespace hexad
