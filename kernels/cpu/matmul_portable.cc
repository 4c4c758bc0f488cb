#include <bit>
#include <cstring>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/portable.h"
#include "kernels/cpu/portable_panel.h"
#include "kernels/dequantize.h"

namespace hexad::cpu {
namespace {

// Number `index` of a panel.
float FloatWeight(WeightKind kind, const uint8_t* panel, int64_t index) {
  if (kind == WeightKind::kF16) return Half(panel, index);
  if (kind == WeightKind::kBF16) {
    uint16_t bits;
    std::memcpy(&bits, panel + index * 2, 2);
    return Bfloat16ToFloat(bits);
  }
  float value;
  std::memcpy(&value, panel + index * 4, 4);
  return value;
}

// Value k of one row, without its scale and, for kU4, as large as PrepareTask expects.
float Quant(const PanelTask& task, int64_t k, int row) {
  if (task.format.kind == WeightKind::kS8) {
    return static_cast<int8_t>(task.quants[k * kPanelRows + row]);
  }
  const uint8_t byte = task.quants[k / 8 * kPanelRows * 4 + row * 4 + k % 8 / 2];
  const uint32_t nibble = byte >> (k % 2 * 4) & 15u;
  return static_cast<float>(k % 8 == 7 ? nibble : nibble << (4 * (k % 8)));
}

}  // namespace

void PortableFloatPanels(const FloatPanelsTask& task) {
  std::vector<float> weights(static_cast<size_t>(task.in));
  for (int64_t row = 0; row < task.rows; ++row) {
    const uint8_t* panel = task.weights + row / kPanelRows * task.panel_bytes;
    for (int64_t k = 0; k < task.in; ++k) {
      weights[k] = FloatWeight(task.kind, panel, k * kPanelRows + row % kPanelRows);
    }
    for (int64_t t = 0; t < task.tokens; ++t) {
      const float* x = task.x + t * kFloatChain;
      float acc = 0.0f;
      for (int64_t begin = 0; begin < task.in; begin += kFloatChain) {
        const int64_t count = task.in - begin < kFloatChain ? task.in - begin : kFloatChain;
        float chain = 0.0f;
        for (int64_t i = 0; i < count; ++i) chain += weights[begin + i] * x[i];
        acc += chain;
        x += task.tokens * kFloatChain;
      }
      task.y[t * task.y_stride + row] = acc;
    }
  }
}

void PortablePanel(const PanelTask& task) {
  const int group = task.format.group;
  const int64_t groups = task.in / group;
  const bool needs_sum = task.format.bias != 0 || task.format.has_min;
  std::vector<float> weights(static_cast<size_t>(task.in));
  std::vector<ScaleMin> scales(static_cast<size_t>(groups));
  for (int row = 0; row < task.rows; ++row) {
    for (int64_t k = 0; k < task.in; ++k) weights[k] = Quant(task, k, row);
    for (int64_t g = 0; g < groups; ++g) scales[g] = LoadScale(task, g, row);
    for (int64_t t = 0; t < task.tokens; ++t) {
      const float* x = task.x + t * task.in;
      float acc = 0.0f;
      for (int64_t g = 0; g < groups; ++g) {
        const float sum = needs_sum ? task.sums[t * groups + g] : 0.0f;
        float chain = sum * static_cast<float>(-task.format.bias);
        for (int64_t k = g * group; k < (g + 1) * group; ++k) chain += weights[k] * x[k];
        acc += scales[g].scale * chain;
        acc += scales[g].min * sum;
      }
      task.y[t * task.y_stride + row] = acc;
    }
  }
}

void PortablePrepare(const PrepareTask& task) {
  const int64_t values = task.tokens * task.in;
  if (task.shifted != nullptr) {
    for (int64_t i = 0; i < values; ++i) {
      const int j = static_cast<int>(i % 8);
      const float factor = j == 7 ? 1.0f : 1.0f / static_cast<float>(uint32_t{1} << (4 * j));
      task.shifted[i] = task.x[i] * factor;
    }
  }
  if (task.sums == nullptr) return;
  for (int64_t g = 0; g < values / task.group; ++g) {
    float sum = 0.0f;
    for (int i = 0; i < task.group; ++i) sum += task.x[g * task.group + i];
    task.sums[g] = sum;
  }
}

}  // namespace hexad::cpu
