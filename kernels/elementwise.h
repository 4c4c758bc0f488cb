#pragma once

// What lies between the matrix products of a transformer layer. All buffers are dense fp32, rows
// one after another. Every op computes each row (or value) from that row alone in a fixed order, so
// the bits depend neither on the other rows nor on the threads. Unless said, out may be an input.

#include <cstdint>
#include <vector>

#include "kernels/thread_team.h"

namespace hexad {

// out = x / sqrt(mean(x^2) + epsilon) * (weight + weight_offset), over each of `rows` rows of
// `dim`. weight: [dim], or nullptr for no weight. weight_offset is 1 where a checkpoint stores
// weight - 1 (Gemma in safetensors; its GGUF files already hold the sum). A norm a head is the same
// with rows * heads rows of head_dim.
void RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon, int64_t rows,
             int64_t dim, float* out, ThreadTeam& team);

// x += y, over `values`.
void AddInPlace(float* x, const float* y, int64_t values, ThreadTeam& team);
// x[r, :] += bias, bias: [dim].
void AddBias(float* x, const float* bias, int64_t rows, int64_t dim, ThreadTeam& team);
// x *= factor.
void Scale(float* x, float factor, int64_t values, ThreadTeam& team);
// x = cap * tanh(x / cap); cap > 0.
void Softcap(float* x, float cap, int64_t values, ThreadTeam& team);

// out = gate * sigmoid(gate) * up (SwiGLU).
void SiluGate(const float* gate, const float* up, int64_t values, float* out, ThreadTeam& team);
// out = gelu(gate) * up with the tanh approximation (GeGLU).
void GeluGate(const float* gate, const float* up, int64_t values, float* out, ThreadTeam& team);

enum class RopeKind : uint8_t {
  kInterleaved,  // pairs (2i, 2i + 1): ggml "norm", Llama in GGUF
  kHalves,       // pairs (i, i + pairs): ggml "neox", Gemma, Qwen, safetensors
};

// [rope_dim / 2] angular frequencies, base^(-2i / rope_dim) * freq_scale / factors[i].
// freq_scale: 1 / (linear scaling factor). factors: [rope_dim / 2] as in the tensor
// rope_freqs.weight, or nullptr. RoFormer, arXiv:2104.09864.
std::vector<float> RopeFrequencies(int64_t rope_dim, double base, double freq_scale,
                                   const float* factors);

// Once a step, for all layers and heads that share frequencies. positions: [rows]. table: [rows, 2,
// pairs], the cosines of a row and then its sines, both times `magnitude` (1 but for YaRN).
void RopeTable(const int64_t* positions, int64_t rows, const float* frequencies, int64_t pairs,
               float magnitude, float* table, ThreadTeam& team);

// Rotates the first 2 * pairs values of every head of x: [rows, heads, head_dim], in place.
void Rope(RopeKind kind, const float* table, int64_t pairs, int64_t rows, int64_t heads,
          int64_t head_dim, float* x, ThreadTeam& team);

}  // namespace hexad
