#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/kernel_set.h"

namespace hexad {
namespace {

// Values that are worth a hand-over to another thread.
constexpr int64_t kGrainValues = 16384;

int64_t RowGrain(int64_t dim) {
  return std::max<int64_t>(1, kGrainValues / std::max<int64_t>(1, dim));
}

}  // namespace

void RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon, int64_t rows,
             int64_t dim, float* out, ThreadTeam& team) {
  team.ParallelFor(rows, RowGrain(dim), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      cpu::Kernels().rms_norm(x + r * dim, weight, weight_offset, epsilon, dim, out + r * dim);
    }
  });
}

void AddInPlace(float* x, const float* y, int64_t values, ThreadTeam& team) {
  team.ParallelFor(values, kGrainValues, [&](int64_t begin, int64_t end, int) {
    cpu::Kernels().add(x + begin, y + begin, end - begin);
  });
}

void AddBias(float* x, const float* bias, int64_t rows, int64_t dim, ThreadTeam& team) {
  team.ParallelFor(rows, RowGrain(dim), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      cpu::Kernels().add(x + r * dim, bias, dim);
    }
  });
}

void Scale(float* x, float factor, int64_t values, ThreadTeam& team) {
  team.ParallelFor(values, kGrainValues, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

void Softcap(float* x, float cap, int64_t values, ThreadTeam& team) {
  team.ParallelFor(values, kGrainValues, [&](int64_t begin, int64_t end, int) {
    cpu::Kernels().softcap(x + begin, cap, end - begin);
  });
}

void SiluGate(const float* gate, const float* up, int64_t values, float* out, ThreadTeam& team) {
  team.ParallelFor(values, kGrainValues, [&](int64_t begin, int64_t end, int) {
    cpu::Kernels().silu_gate(gate + begin, up + begin, end - begin, out + begin);
  });
}

void GeluGate(const float* gate, const float* up, int64_t values, float* out, ThreadTeam& team) {
  team.ParallelFor(values, kGrainValues, [&](int64_t begin, int64_t end, int) {
    cpu::Kernels().gelu_gate(gate + begin, up + begin, end - begin, out + begin);
  });
}

std::vector<float> RopeFrequencies(int64_t rope_dim, double base, double freq_scale,
                                   const float* factors) {
  std::vector<float> frequencies(static_cast<size_t>(rope_dim / 2));
  for (int64_t i = 0; i < rope_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope_dim);
    const double factor = factors == nullptr ? 1.0 : double{factors[i]};
    frequencies[i] = static_cast<float>(std::pow(base, exponent) * freq_scale / factor);
  }
  return frequencies;
}

void RopeTable(const int64_t* positions, int64_t rows, const float* frequencies, int64_t pairs,
               float magnitude, float* table, ThreadTeam& team) {
  team.ParallelFor(rows, RowGrain(pairs * 32), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* const row = table + r * 2 * pairs;
      for (int64_t i = 0; i < pairs; ++i) {
        // In double: at position 10^6 a float angle would be off by a thirtieth of a turn.
        const double angle = static_cast<double>(positions[r]) * double{frequencies[i]};
        row[i] = static_cast<float>(std::cos(angle) * magnitude);
        row[pairs + i] = static_cast<float>(std::sin(angle) * magnitude);
      }
    }
  });
}

void Rope(RopeKind kind, const float* table, int64_t pairs, int64_t rows, int64_t heads,
          int64_t head_dim, float* x, ThreadTeam& team) {
  team.ParallelFor(rows, RowGrain(heads * head_dim), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* const row = table + r * 2 * pairs;
      for (int64_t h = 0; h < heads; ++h) {
        cpu::Kernels().rotate(row, row + pairs, pairs, kind == RopeKind::kInterleaved,
                              x + (r * heads + h) * head_dim);
      }
    }
  });
}

}  // namespace hexad
