#include "kernels/cpu/portable.h"

#include <cmath>
#include <limits>

#include "kernels/dequantize.h"

namespace hexad::cpu {
namespace {

void Add(float* x, const float* y, int64_t values) {
  for (int64_t i = 0; i < values; ++i) x[i] += y[i];
}

float Max(const float* x, int64_t values) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < values; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

void Rotate(const float* cosines, const float* sines, int64_t pairs, bool interleaved, float* x) {
  const int64_t step = interleaved ? 2 : 1;
  float* const second = interleaved ? x + 1 : x + pairs;
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[i * step], b = second[i * step];
    x[i * step] = a * cosines[i] - b * sines[i];
    second[i * step] = a * sines[i] + b * cosines[i];
  }
}

void RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon, int64_t dim,
             float* out) {
  double squares = 0;
  for (int64_t i = 0; i < dim; ++i) squares += double{x[i]} * double{x[i]};
  const float mean = static_cast<float>(squares / static_cast<double>(dim));
  const float factor = 1.0f / std::sqrt(mean + epsilon);
  for (int64_t i = 0; i < dim; ++i) {
    out[i] = x[i] * factor * (weight == nullptr ? 1.0f : weight[i] + weight_offset);
  }
}

void Softcap(float* x, float cap, int64_t values) {
  for (int64_t i = 0; i < values; ++i) x[i] = cap * std::tanh(x[i] / cap);
}

void SiluGate(const float* gate, const float* up, int64_t values, float* out) {
  for (int64_t i = 0; i < values; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void GeluGate(const float* gate, const float* up, int64_t values, float* out) {
  for (int64_t i = 0; i < values; ++i) {
    const float g = gate[i];
    const float inner = 0.797884560802865f * g * (1.0f + 0.044715f * g * g);
    out[i] = g / (1.0f + std::exp(-2.0f * inner)) * up[i];
  }
}

}  // namespace

const KernelSet kPortableKernels = {
    .name = "portable-f32-2",
    .int8_name = "portable-i8-2",
    .float_panels = PortableFloatPanels,
    .panel = PortablePanel,
    .prepare = PortablePrepare,
    .int8_panels = PortableInt8Panels,
    .quantize = PortableQuantize,
    .add = Add,
    .max = Max,
    .rotate = Rotate,
    .rms_norm = RmsNorm,
    .softcap = Softcap,
    .silu_gate = SiluGate,
    .gelu_gate = GeluGate,
};

}  // namespace hexad::cpu
