#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/portable.h"
#include "kernels/cpu/portable_panel.h"

namespace hexad::cpu {
namespace {

constexpr int kBlock = 32;

// Value k of one row, as meant: without the bias of the stored one.
int Quant(const Int8PanelTask& task, int64_t k, int row) {
  const int quad = static_cast<int>(k % kBlock / 4);
  const int64_t lane = row * 4 + k % 4;
  const auto nibble = [&](const uint8_t* block) {
    return block[quad / 2 * 64 + lane] >> (quad % 2 * 4) & 15;
  };
  const int64_t b = k / kBlock;
  switch (task.format.kind) {
    case WeightKind::kQuadU4:
      return nibble(task.quants + b * 256) - task.format.bias;
    case WeightKind::kQuadU5: {
      const uint8_t* block = task.quants + b * 320;
      const int high = block[256 + lane] >> quad & 1;
      return (nibble(block) | high << 4) - task.format.bias;
    }
    case WeightKind::kQuadU6: {
      const uint8_t* block = task.quants + b * 384;
      const int high = block[256 + quad / 4 * 64 + lane] >> (quad % 4 * 2) & 3;
      return (nibble(block) | high << 4) - task.format.bias;
    }
    default:
      return static_cast<int8_t>(task.quants[b * 512 + quad * 64 + lane]);
  }
}

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
  int sums[2] = {0, 0};
  for (int i = 0; i < kBlock; ++i) {
    int8_t& q = task.quants[at * kBlock + i];
    q = usable ? static_cast<int8_t>(std::nearbyint(x[i] * inverse)) : int8_t{0};
    sums[i / 16] += q;
  }
  task.scales[at] = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  if (usable) task.scales[at] = max / 127.0f;
  if (task.sums16 != nullptr) {
    task.sums16[at + b * task.tokens] = sums[0];
    task.sums16[at + (b + 1) * task.tokens] = sums[1];
  }
  if (task.sums32 != nullptr) task.sums32[at] = sums[0] + sums[1];
}

void Panel(const Int8PanelTask& task) {
  const int group = task.format.group;
  const int64_t groups = task.in / group;
  std::vector<int> weights(static_cast<size_t>(task.in));
  std::vector<ScaleMin> scales(static_cast<size_t>(groups));
  for (int row = 0; row < task.rows; ++row) {
    for (int64_t k = 0; k < task.in; ++k) weights[k] = Quant(task, k, row);
    for (int64_t g = 0; g < groups; ++g) scales[g] = LoadScale(task, g, row);
    for (int64_t t = 0; t < task.tokens; ++t) {
      float acc = 0.0f;
      for (int64_t g = 0; g < groups; ++g) {
        const float x_scale = task.x_scales[g * group / kBlock * task.tokens + t];
        int dot = 0;
        for (int64_t k = g * group; k < (g + 1) * group; ++k) {
          dot += weights[k] * task.x[(k / kBlock * task.tokens + t) * kBlock + k % kBlock];
        }
        acc += scales[g].scale * x_scale * static_cast<float>(dot);
        if (!task.format.has_min) continue;
        acc += scales[g].min * (x_scale * static_cast<float>(task.x_sums[g * task.tokens + t]));
      }
      task.y[t * task.y_stride + row] = acc;
    }
  }
}

}  // namespace

void PortableInt8Panels(const Int8PanelTask& all) {
  Int8PanelTask task = all;
  for (int64_t p = 0; p < all.panels; ++p) {
    task.rows = std::min<int64_t>(kPanelRows, all.rows - p * kPanelRows);
    Panel(task);
    task.quants += all.panel_bytes;
    task.scales += all.panel_bytes;
    task.supers += all.panel_bytes;
    task.y += kPanelRows;
  }
}

void PortableQuantize(const QuantizeTask& task) {
  for (int64_t t = task.first_token; t < task.last_token; ++t) {
    for (int64_t b = 0; b < task.in / kBlock; ++b) QuantizeBlock(task, t, b);
  }
}

}  // namespace hexad::cpu
