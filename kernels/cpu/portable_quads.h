#pragma once

// Single values of panels for int8 activations, see packed_layout.h.

#include <cstdint>

#include "kernels/cpu/pack.h"
#include "kernels/cpu/portable_panel.h"
#include "kernels/iq4_codebook.h"

namespace hexad::cpu {

// Value i of a row's 32 in a block, as meant: without the bias of the stored one.
inline int QuadValue(const PackedFormat& format, const uint8_t* block, int i, int row) {
  const int quad = i / 4;
  const int lane = row * 4 + i % 4;
  const auto bits = [&](int line, int from, int count) {
    return block[line * 64 + lane] >> from & ((1 << count) - 1);
  };
  const auto nibble = [&] { return bits(quad / 2, quad % 2 * 4, 4); };
  int stored = 0;
  switch (format.kind) {
    case WeightKind::kQuadCode:
      return kIq4Codebook[nibble()];
    case WeightKind::kQuadU2:
      stored = bits(quad / 4, quad % 4 * 2, 2);
      break;
    case WeightKind::kQuadU3:
      if (quad < 6) stored = bits(quad / 2, quad % 2 * 3, 3);
      if (quad == 6) stored = bits(0, 6, 2) | bits(1, 6, 1) << 2;
      if (quad == 7) stored = bits(1, 7, 1) | bits(2, 6, 2) << 1;
      break;
    case WeightKind::kQuadU4:
      stored = nibble();
      break;
    case WeightKind::kQuadU5:
      if (quad < 5) stored = bits(quad, 0, 5);
      if (quad == 5) stored = bits(0, 5, 3) | bits(1, 5, 2) << 3;
      if (quad == 6) stored = bits(2, 5, 3) | bits(3, 5, 2) << 3;
      if (quad == 7) stored = bits(4, 5, 3) | bits(1, 7, 1) << 3 | bits(3, 7, 1) << 4;
      break;
    case WeightKind::kQuadU6: {
      const int line = quad / 4 * 3;
      stored = bits(line, 6, 2) | bits(line + 1, 6, 2) << 2 | bits(line + 2, 6, 2) << 4;
      if (quad % 4 < 3) stored = bits(line + quad % 4, 0, 6);
      break;
    }
    default:
      return static_cast<int8_t>(block[quad * 64 + lane]);
  }
  return stored - format.bias;
}

// Of one row in group g of a chunk, exactly.
inline ScaleMin QuadScale(const PackedFormat& format, const ChunkLayout& layout,
                          const uint8_t* chunk, int g, int row) {
  ScaleMin result{Half(chunk, row), format.has_min ? Half(chunk + layout.mins, row) : 0.0f};
  if (!format.multipliers) return result;
  const uint8_t* lines = chunk + layout.multipliers + row;
  const int groups = static_cast<int>(layout.values) / format.group;
  const uint8_t scale = lines[g * kPanelRows];
  if (format.kind == WeightKind::kQuadU2) {
    return {result.scale * static_cast<float>(scale & 15),
            -result.min * static_cast<float>(scale >> 4)};
  }
  result.scale *= static_cast<float>(static_cast<int8_t>(scale));
  if (format.has_min) result.min *= -static_cast<float>(lines[(groups + g) * kPanelRows]);
  return result;
}

}  // namespace hexad::cpu
