#pragma once

// The functions of the AVX2 kernel set, see kernel_set.h.

#include <stdint.h>

#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {

void Avx2FloatPanels(const FloatPanelsTask& task);
void Avx2Panel(const PanelTask& task);
void Avx2Prepare(const PrepareTask& task);
void Avx2Int8Panels(const Int8PanelTask& task);
void Avx2Int8SuperPanels(const Int8PanelTask& task);  // of formats with multipliers
void Avx2Quantize(const QuantizeTask& task);
void Avx2Add(float* x, const float* y, int64_t values);
float Avx2Max(const float* x, int64_t values);
void Avx2Rotate(const float* cosines, const float* sines, int64_t pairs, bool interleaved,
                float* x);
void Avx2RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon,
                 int64_t dim, float* out);
void Avx2Softcap(float* x, float cap, int64_t values);
void Avx2SiluGate(const float* gate, const float* up, int64_t values, float* out);
void Avx2GeluGate(const float* gate, const float* up, int64_t values, float* out);

}  // namespace hexad::cpu
