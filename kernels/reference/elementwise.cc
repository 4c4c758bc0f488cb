#include <cmath>

#include "kernels/reference/reference.h"

namespace hexad::reference {

void RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon, int64_t rows,
             int64_t dim, float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < dim; ++i) squares += double{x[r * dim + i]} * double{x[r * dim + i]};
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(dim) + double{epsilon});
    for (int64_t i = 0; i < dim; ++i) {
      const double scale = weight == nullptr ? 1.0 : double{weight[i]} + double{weight_offset};
      out[r * dim + i] = static_cast<float>(x[r * dim + i] * factor * scale);
    }
  }
}

void AddInPlace(float* x, const float* y, int64_t values) {
  for (int64_t i = 0; i < values; ++i) x[i] += y[i];
}

void AddBias(float* x, const float* bias, int64_t rows, int64_t dim) {
  for (int64_t r = 0; r < rows; ++r) AddInPlace(x + r * dim, bias, dim);
}

void Scale(float* x, float factor, int64_t values) {
  for (int64_t i = 0; i < values; ++i) x[i] *= factor;
}

void Softcap(float* x, float cap, int64_t values) {
  for (int64_t i = 0; i < values; ++i) {
    x[i] = static_cast<float>(double{cap} * std::tanh(double{x[i]} / double{cap}));
  }
}

void SiluGate(const float* gate, const float* up, int64_t values, float* out) {
  for (int64_t i = 0; i < values; ++i) {
    const double g = gate[i];
    out[i] = static_cast<float>(g / (1.0 + std::exp(-g)) * up[i]);
  }
}

void GeluGate(const float* gate, const float* up, int64_t values, float* out) {
  constexpr double kSqrt2OverPi = 0.79788456080286535588;
  for (int64_t i = 0; i < values; ++i) {
    const double g = gate[i];
    const double inner = kSqrt2OverPi * (g + 0.044715 * g * g * g);
    out[i] = static_cast<float>(0.5 * g * (1.0 + std::tanh(inner)) * up[i]);
  }
}

void Rope(RopeKind kind, const int64_t* positions, const float* frequencies, int64_t pairs,
          float magnitude, int64_t rows, int64_t heads, int64_t head_dim, float* x) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < heads; ++h, x += head_dim) {
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(positions[r]) * double{frequencies[i]};
        const double cosine = std::cos(angle) * magnitude, sine = std::sin(angle) * magnitude;
        float& first = kind == RopeKind::kHalves ? x[i] : x[2 * i];
        float& second = kind == RopeKind::kHalves ? x[i + pairs] : x[2 * i + 1];
        const double a = first, b = second;
        first = static_cast<float>(a * cosine - b * sine);
        second = static_cast<float>(a * sine + b * cosine);
      }
    }
  }
}

}  // namespace hexad::reference
