#pragma once

// How PackedMatrix lies in memory. 16 output rows make a panel (the last one is filled up with
// zeros), a multiple of 64 bytes long; the first begins at a multiple of 64.
//
// For fp32 activations (kF32 to kU4) a panel is three parts, each ascending in k:
//   quants  by kind, see WeightKind
//   scales  a group: 16 halves, then 16 half mins where the format has mins;
//           with multipliers: 16 int8, then 16 uint8
//   supers  with multipliers only, 256 values: 16 halves, then 16 halves that scale the mins
//
// For int8 activations (kQuad*) a panel is a chain of chunks ascending in k, so that reading it is
// one forward stream. A chunk holds 32 values of each row, with multipliers 256:
//   scales       16 halves
//   mins         16 halves, where the format has mins
//   multipliers  with multipliers only, group g of the chunk: [g][16] int8, then where the format
//                has mins [g][16] uint8; of kQuadU2 both in one byte, [g][16]: the scale's in the
//                low nibble, the min's in the high one
//   quants       by kind, a block of 32 values after the other
// Everything in a chunk begins at a multiple of 32 bytes of the panel, not always of 64.
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

  // Quads of 4 consecutive k, a byte each, so that 16 rows fill 64 bytes; per 32 values, quad
  // i = k % 32 / 4:
  kQuadS8,    // [i][16 rows][4] int8
  kQuadCode,  // kQuadU4 of indices into kIq4Codebook
  kQuadU2,    // [i / 4][16][4] bytes: quad i in bits 2(i % 4) and the next
  kQuadU3,    // [3][16][4] bytes: quads 2j and 2j + 1 in the lower 6 bits of line j; in the upper
              // two, 0: bits 0, 1 of quad 6; 1: bit 2 of it, bit 0 of 7; 2: bits 1, 2 of 7
  kQuadU4,    // [i / 2][16][4] bytes: quad 2j in the low nibbles, 2j + 1 in the high ones
  kQuadU5,    // [5][16][4] bytes: quads 0..4 in the lower 5 bits; in the upper three,
              // 0: bits 0..2 of quad 5; 1: bits 3, 4 of it, bit 3 of 7; 2: bits 0..2 of 6;
              // 3: bits 3, 4 of it, bit 4 of 7; 4: bits 0..2 of 7
  kQuadU6,    // [i / 4][3][16][4] bytes: quads i % 4 = 0..2 in the lower 6 bits, bits 2j, 2j + 1 of
              // the fourth in the upper two of line j
};

struct PackedFormat {
  WeightKind kind;
  int32_t group;     // values that share a scale; for floats just the length of a chain of FMAs
  int32_t bias;      // kU4, kQuadU*: stored value less the meant one; a power of two or 0
  bool has_min;      // value = scale * q + min, or - min with multipliers
  bool multipliers;  // scale = half of 256 values * int8 of the group
};

// Of panels for fp32 activations: byte offsets within a panel and its size.
struct PanelLayout {
  int64_t scales;
  int64_t supers;
  int64_t bytes;
};

// Of panels for int8 activations: byte offsets within a chunk and its size.
struct ChunkLayout {
  int64_t values;  // of each row
  int64_t mins;
  int64_t multipliers;
  int64_t quants;
  int64_t block_bytes;  // of 32 values of 16 rows
  int64_t bytes;
};

}  // namespace hexad::cpu
