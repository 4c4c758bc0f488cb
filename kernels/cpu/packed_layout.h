#pragma once

// How PackedMatrix lies in memory. 16 output rows make a panel (the last one is filled up with
// zeros). A panel is three parts, each ascending in k, so that a kernel reads forward:
//   quants  by kind, see WeightKind
//   scales  a group: 16 halves, then 16 half mins where the format has mins;
//           with multipliers: 16 int8, then 16 uint8
//   supers  with multipliers only, 256 values: 16 halves, then 16 halves that scale the mins
//
// Included by code that is compiled for newer CPUs: no inline functions, no library headers.

#include <stdint.h>

namespace hexad::cpu {

constexpr int kPanelRows = 16;

enum class WeightKind : uint8_t {
  kF32,   // [k][16]
  kF16,   // [k][16]
  kBF16,  // [k][16]
  kS8,    // [k][16] int8
  kU4,    // [k / 8][16] uint32: value of k % 8 = j in bits 4j..4j+3

  // For int8 activations: quads of 4 consecutive k, a byte each, so that 8 rows fill a vector; per
  // 32 values, quad i = k % 32 / 4:
  kQuadS8,  // [i][16 rows][4] int8
  kQuadU4,  // [i / 2][16][4] bytes: quad 2j in the low nibbles, 2j + 1 in the high ones
  kQuadU5,  // kQuadU4 of the low nibbles, then [16][4] bytes: bit i is the fifth bit of quad i
  kQuadU6,  // the same, then [i / 4][16][4] bytes: bits 2(i % 4) and the next, the upper two
};

struct PackedFormat {
  WeightKind kind;
  int32_t group;     // values that share a scale; for floats just the length of a chain of FMAs
  int32_t bias;      // kU4, kQuadU4..6: stored value less the meant one; a power of two or 0
  bool has_min;      // value = scale * q + min, or - min with multipliers
  bool multipliers;  // scale = half of 256 values * int8 of the group
};

// Byte offsets within a panel and its size.
struct PanelLayout {
  int64_t scales;
  int64_t supers;
  int64_t bytes;
};

}  // namespace hexad::cpu
