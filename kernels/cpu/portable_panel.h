#pragma once

// What the portable panel products share; Task: PanelTask or Int8PanelTask.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernel_set.h"
#include "kernels/dequantize.h"

namespace hexad::cpu {

// Number `index` of an array of halves.
inline float Half(const uint8_t* halves, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, halves + 2 * index, 2);
  return HalfToFloat(bits);
}

// Of one row in a group, exactly: value = scale * q + min.
struct ScaleMin {
  float scale = 1.0f;
  float min = 0.0f;
};

template <typename Task>
ScaleMin LoadScale(const Task& task, int64_t g, int row) {
  const PackedFormat& format = task.format;
  if (format.kind <= WeightKind::kBF16) return {};
  const int planes = format.has_min ? 2 : 1;
  if (!format.multipliers) {
    const uint8_t* line = task.scales + g * planes * 32;
    return {Half(line, row), format.has_min ? Half(line + 32, row) : 0.0f};
  }
  const uint8_t* line = task.scales + g * planes * 16;
  const uint8_t* super = task.supers + g * format.group / 256 * planes * 32;
  ScaleMin result;
  result.scale = Half(super, row) * static_cast<float>(static_cast<int8_t>(line[row]));
  if (format.has_min) result.min = -(Half(super + 32, row) * static_cast<float>(line[16 + row]));
  return result;
}

}  // namespace hexad::cpu
