#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/portable.h"
#include "kernels/cpu/portable_quads.h"

namespace hexad::cpu {
namespace {

constexpr int kBlock = 32;

void QuantizeBlock(const QuantizeTask& task, int64_t t, int64_t b) {
  const float* x = task.x + t * task.in + b * kBlock;
  const int64_t at = b * task.tokens + t;
  bool finite = true;
  float max = 0.0f;
  for (int i = 0; i < kBlock; ++i) {
    finite = finite && std::isfinite(x[i]);
    max = std::max(max, std::fabs(x[i]));
  }
  const bool usable = finite && max >= 0x1p-100f;
  const float inverse = usable ? 127.0f / max : 0.0f;
  int halves[2] = {0, 0}, lanes[4] = {0, 0, 0, 0};
  for (int i = 0; i < kBlock; ++i) {
    int8_t& q = task.quants[at * kBlock + i];
    q = usable ? static_cast<int8_t>(std::nearbyint(x[i] * inverse)) : int8_t{0};
    halves[i / 16] += q;
    lanes[i / 16 * 2 + i % 4 / 2] += q;
  }
  task.scales[at] = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  if (usable) task.scales[at] = max / 127.0f;
  if (task.sums != nullptr) {
    task.sums[at] = task.scales[at] * static_cast<float>(halves[0] + halves[1]);
  }
  for (int i = 0; i < 2; ++i) {
    if (task.halves != nullptr) task.halves[2 * at + i] = static_cast<int16_t>(halves[i]);
  }
  for (int i = 0; i < 4; ++i) {
    const int64_t pair = at + (b + i / 2) * task.tokens;
    if (task.lanes16 != nullptr) task.lanes16[2 * pair + i % 2] = static_cast<int16_t>(lanes[i]);
  }
  for (int i = 0; i < 2; ++i) {
    if (task.lanes32 == nullptr) continue;
    task.lanes32[2 * at + i] = static_cast<int16_t>(lanes[i] + lanes[i + 2]);
  }
}

// The rows of a panel one after the other.
void Panel(const Int8PanelTask& task, const uint8_t* panel, int64_t rows, float* y) {
  const ChunkLayout layout = ChunkLayoutOf(task.format);
  const int group = task.format.group;
  std::vector<int> weights(static_cast<size_t>(task.in));
  std::vector<ScaleMin> scales(static_cast<size_t>(task.in / group));
  for (int row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < task.in; ++k) {
      const uint8_t* chunk = panel + k / layout.values * layout.bytes;
      const int i = static_cast<int>(k % layout.values);
      const uint8_t* block = chunk + layout.quants + i / kBlock * layout.block_bytes;
      weights[k] = QuadValue(task.format, block, i % kBlock, row);
      if (i % group == 0) {
        scales[k / group] = QuadScale(task.format, layout, chunk, i / group, row);
      }
    }
    for (int64_t t = 0; t < task.tokens; ++t) {
      float acc = 0.0f;
      for (int64_t k = 0; k < task.in; k += group) {
        const ScaleMin& scale = scales[k / group];
        const int64_t block = k / kBlock * task.tokens + t;
        const int8_t* x = task.x + block * kBlock + k % kBlock;
        int dot = 0, sum = 0;
        for (int i = 0; i < group; ++i) {
          dot += weights[k + i] * x[i];
          sum += x[i];
        }
        const float x_scale = task.x_scales[block];
        acc += scale.scale * x_scale * static_cast<float>(dot);
        if (task.format.has_min) acc += scale.min * (x_scale * static_cast<float>(sum));
      }
      y[t * task.y_stride + row] = acc;
    }
  }
}

}  // namespace

void PortableInt8Panels(const Int8PanelTask& task) {
  for (int64_t p = 0; p < task.panels; ++p) {
    const int64_t rows = std::min<int64_t>(kPanelRows, task.rows - p * kPanelRows);
    Panel(task, task.panel + p * task.panel_bytes, rows, task.y + p * kPanelRows);
  }
}

void PortableQuantize(const QuantizeTask& task) {
  for (int64_t t = task.first_token; t < task.last_token; ++t) {
    for (int64_t b = 0; b < task.in / kBlock; ++b) QuantizeBlock(task, t, b);
  }
}

}  // namespace hexad::cpu
