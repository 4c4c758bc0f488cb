#pragma once

// The functions that exist once for every CPU level, as plain data and pointers: what is behind
// them is compiled for that level, what is before them for any x86-64.
//
// Included by code that is compiled for newer CPUs: no inline functions, no library headers.

#include <stdint.h>

#include "kernels/cpu/packed_layout.h"

namespace hexad::cpu {

// Consecutive panels of F32, F16 or BF16 times all tokens. Every output is a sum in ascending order
// over chunks of kFloatChain values of k, each of them a chain of FMAs in ascending k.
constexpr int kFloatChain = 256;
struct FloatPanelsTask {
  WeightKind kind;
  int64_t panels;
  int64_t panel_bytes;     // from one to the next
  const uint8_t* weights;  // of the first
  int64_t in;
  int64_t tokens;
  const float* x;  // [in / kFloatChain rounded up, tokens, kFloatChain]
  float* y;        // as in PanelTask
  int64_t y_stride;
  int64_t rows;  // valid rows of all the panels
};

// One panel of quantised weights times all tokens.
struct PanelTask {
  PackedFormat format;
  const uint8_t* quants;
  const uint8_t* scales;
  const uint8_t* supers;
  int64_t in;
  int64_t tokens;
  const float* x;     // [tokens, in]; for kU4 multiplied as PrepareTask says
  const float* sums;  // [tokens, in / group] where the format has bias or min
  float* y;           // of the panel's first row
  int64_t y_stride;   // floats from one token's y to the next one's
  int32_t rows;       // valid rows of the panel
};

// What kU4 panels and formats with bias or min need of x, for some tokens.
struct PrepareTask {
  const float* x;  // [tokens, in]
  int64_t tokens;
  int64_t in;
  int32_t group;
  float* shifted;  // [tokens, in]: x[k] * 16^-(k % 8), but x[k] for k % 8 = 7; or nullptr
  float* sums;     // [tokens, in / group]; or nullptr
};

// x in int8: blocks of 32 values with a scale each, see matmul.h. A block of all tokens lies
// together, so that a kernel finds those of its tokens at constant offsets. The sums are of quants;
// each may be nullptr where no output needs it.
struct QuantizeTask {
  const float* x;  // [tokens, in]; in is a multiple of 32
  int64_t tokens;
  int64_t in;
  int64_t first_token;  // those to quantise
  int64_t last_token;   // exclusive
  int8_t* quants;       // [in / 32, tokens, 32]
  float* scales;        // [in / 32, tokens]
  float* sums;          // [in / 32, tokens]: scale times the sum
  int16_t* halves;      // [in / 32, tokens, 2]: of the first 16, of the second 16
  int16_t* lanes16;     // [in / 16, tokens, 2]: of those with k % 4 < 2, of the others
  int16_t* lanes32;     // [in / 32, tokens, 2]
};

// Consecutive panels of a kQuad kind times all tokens.
struct Int8PanelTask {
  PackedFormat format;
  int64_t panels;
  int64_t panel_bytes;   // from one to the next
  const uint8_t* panel;  // the first
  int64_t in;            // a multiple of 32, with multipliers of 256
  int64_t tokens;        // > 0
  const int8_t* x;       // this and the following as QuantizeTask makes them
  const float* x_scales;
  const float* x_sums;      // where the format has mins
  const int16_t* x_halves;  // of kQuadU2
  const int16_t* x_lanes;   // lanes16 or lanes32, as the group, where the format has a bias
  float* y;                 // as in PanelTask
  int64_t y_stride;
  int64_t rows;  // valid rows of all the panels
};

struct KernelSet {
  const char* name;
  const char* int8_name;  // with int8 activations
  void (*float_panels)(const FloatPanelsTask& task);
  void (*panel)(const PanelTask& task);
  void (*prepare)(const PrepareTask& task);
  void (*int8_panels)(const Int8PanelTask& task);
  void (*quantize)(const QuantizeTask& task);

  // x += y.
  void (*add)(float* x, const float* y, int64_t values);
  // The greatest value that is no NaN; minus infinity where there is none.
  float (*max)(const float* x, int64_t values);
  // Pairs (2i, 2i + 1), interleaved, or (i, i + pairs) of one head.
  void (*rotate)(const float* cosines, const float* sines, int64_t pairs, bool interleaved,
                 float* x);
  void (*rms_norm)(const float* x, const float* weight, float weight_offset, float epsilon,
                   int64_t dim, float* out);
  void (*softcap)(float* x, float cap, int64_t values);
  void (*silu_gate)(const float* gate, const float* up, int64_t values, float* out);
  void (*gelu_gate)(const float* gate, const float* up, int64_t values, float* out);
};

extern const KernelSet kPortableKernels;

// The best set for this CPU: the same one at every call.
const KernelSet& Kernels();

}  // namespace hexad::cpu
