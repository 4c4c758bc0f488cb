#include <cassert>
#include <cstring>

#include "kernels/cpu/pack.h"
#include "kernels/cpu/portable_panel.h"
#include "kernels/cpu/portable_quads.h"
#include "kernels/dequantize.h"
#include "kernels/matmul.h"

namespace hexad {
namespace cpu {
namespace {

// A panel of which one row is read; what LoadScale wants of a task.
struct PackedPanel {
  PackedFormat format;
  const uint8_t* quants;
  const uint8_t* scales;
  const uint8_t* supers;
};

float FloatAt(const PackedPanel& panel, int64_t index) {
  if (panel.format.kind == WeightKind::kF16) return Half(panel.quants, index);
  if (panel.format.kind == WeightKind::kBF16) {
    uint16_t bits;
    std::memcpy(&bits, panel.quants + 2 * index, sizeof(bits));
    return Bfloat16ToFloat(bits);
  }
  float value;
  std::memcpy(&value, panel.quants + 4 * index, sizeof(value));
  return value;
}

int QuantAt(const PackedPanel& panel, int64_t k, int row) {
  if (panel.format.kind == WeightKind::kS8) {
    return static_cast<int8_t>(panel.quants[k * kPanelRows + row]);
  }
  const uint8_t byte = panel.quants[k / 8 * kPanelRows * 4 + row * 4 + k % 8 / 2];
  return (byte >> (k % 2 * 4) & 15) - panel.format.bias;
}

// Of a panel for int8 activations.
void QuadRow(const PackedFormat& format, const uint8_t* panel, int row, int64_t in, float* out) {
  const ChunkLayout layout = ChunkLayoutOf(format);
  for (int64_t begin = 0; begin < in; begin += format.group) {
    const uint8_t* chunk = panel + begin / layout.values * layout.bytes;
    const auto first = static_cast<int>(begin % layout.values);
    const ScaleMin scale = QuadScale(format, layout, chunk, first / format.group, row);
    const uint8_t* block = chunk + layout.quants + first / 32 * layout.block_bytes;
    for (int i = 0; i < format.group; ++i) {
      const int quant = QuadValue(format, block, first % 32 + i, row);
      const float product = scale.scale * static_cast<float>(quant);
      out[begin + i] = format.has_min ? product + scale.min : product;
    }
  }
}

}  // namespace
}  // namespace cpu

void PackedMatrix::Row(int64_t row, float* out) const {
  assert(row >= 0 && row < out_);
  cpu::PackedPanel panel{cpu::FormatOf(type_, activations_), nullptr, nullptr, nullptr};
  if (panel.format.kind >= cpu::WeightKind::kQuadS8) {
    const int64_t first = row / cpu::kPanelRows * cpu::PanelBytes(panel.format, in_);
    return cpu::QuadRow(panel.format, reinterpret_cast<const uint8_t*>(data()) + first,
                        static_cast<int>(row % cpu::kPanelRows), in_, out);
  }
  const cpu::PanelLayout layout = cpu::LayoutOf(panel.format, in_);
  panel.quants = reinterpret_cast<const uint8_t*>(data()) + row / cpu::kPanelRows * layout.bytes;
  panel.scales = panel.quants + layout.scales;
  panel.supers = panel.quants + layout.supers;
  const auto column = static_cast<int>(row % cpu::kPanelRows);
  if (panel.format.kind <= cpu::WeightKind::kBF16) {
    for (int64_t k = 0; k < in_; ++k) {
      out[k] = cpu::FloatAt(panel, k * cpu::kPanelRows + column);
    }
    return;
  }
  const int group = panel.format.group;
  for (int64_t begin = 0; begin < in_; begin += group) {
    const cpu::ScaleMin scale = cpu::LoadScale(panel, begin / group, column);
    for (int64_t k = begin; k < begin + group; ++k) {
      const float product = scale.scale * static_cast<float>(cpu::QuantAt(panel, k, column));
      out[k] = panel.format.has_min ? product + scale.min : product;
    }
  }
}

}  // namespace hexad
