#pragma once

// How the AVX2 products with int8 activations read weights, and their exact integer dots. Static,
// as in avx2_vector.h.
//
// A 32-bit lane is an output row: vpmaddubsw multiplies 4 consecutive weights of 8 rows by the same
// 4 bytes of x, so that nothing is ever added across lanes. Its 16-bit sums of two products are
// added up over as many quads as fit before they are widened:
//   with a bias, the sums of x times the bias are taken off the first one. What remains is a dot of
//   the meant values, at most 16 * 16 * 127 = 32512 (Q5_0) or 8 * 32 * 127 (Q6_K) in a lane, so
//   that it does not matter how far the sums in between wrap around;
//   without, 16 * 15 * 127 = 30480 of 4 bits fit, and 8 * 31 * 127 = 31496 of 5 bits.
// Widening is a multiplication anyway (vpmaddwd), so group multipliers cost nothing there; with
// them a block's dot is at most 2 * 2 * 32512 * 128 < 2^24: exact as a float too.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2_panel.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"
#include "kernels/iq4_codebook.h"

namespace hexad::cpu {
namespace {

constexpr int kBlock = 32;  // values that share a scale of x
constexpr int kTileBlockBytes = 512;

// A reader gives quad i (a constant after unrolling) of rows 8v..8v+7 from the quants of a block.

struct ReadU2 {
  static constexpr bool kSigned = false;
  static constexpr int kBytes = 128;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    __m256i bytes = LoadBytes(quants + i / 4 * 64 + v * 32);
    if (i % 4 != 0) bytes = _mm256_srli_epi16(bytes, i % 4 * 2);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(3));
  }
};

// `count` bits of 32 bytes, from bit `from` on, moved to bit `to` on.
INLINE __m256i Bits(__m256i bytes, int from, int count, int to) {
  if (from < to) bytes = _mm256_slli_epi16(bytes, to - from);
  if (from > to) bytes = _mm256_srli_epi16(bytes, from - to);
  return _mm256_and_si256(bytes, _mm256_set1_epi8(static_cast<char>(((1 << count) - 1) << to)));
}

struct ReadU3 {
  static constexpr bool kSigned = false;
  static constexpr int kBytes = 192;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    const auto line = [&](int j) { return LoadBytes(quants + j * 64 + v * 32); };
    if (i < 6) return Bits(line(i / 2), i % 2 * 3, 3, 0);
    if (i == 6) return _mm256_or_si256(Bits(line(0), 6, 2, 0), Bits(line(1), 6, 1, 2));
    return _mm256_or_si256(Bits(line(1), 7, 1, 0), Bits(line(2), 6, 2, 1));
  }
};

struct ReadU4 {
  static constexpr bool kSigned = false;
  static constexpr int kBytes = 256;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    __m256i bytes = LoadBytes(quants + i / 2 * 64 + v * 32);
    if (i % 2 != 0) bytes = _mm256_srli_epi16(bytes, 4);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
  }
};

struct ReadU5 {
  static constexpr bool kSigned = false;
  static constexpr int kBytes = 320;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    const auto line = [&](int j) { return LoadBytes(quants + j * 64 + v * 32); };
    if (i < 5) return Bits(line(i), 0, 5, 0);
    if (i < 7) {
      const int j = (i - 5) * 2;
      return _mm256_or_si256(Bits(line(j), 5, 3, 0), Bits(line(j + 1), 5, 2, 3));
    }
    return _mm256_or_si256(_mm256_or_si256(Bits(line(4), 5, 3, 0), Bits(line(1), 7, 1, 3)),
                           Bits(line(3), 7, 1, 4));
  }
};

struct ReadU6 {
  static constexpr bool kSigned = false;
  static constexpr int kBytes = 384;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    const auto line = [&](int j) { return LoadBytes(quants + (i / 4 * 3 + j) * 64 + v * 32); };
    if (i % 4 < 3) return Bits(line(i % 4), 0, 6, 0);
    return _mm256_or_si256(_mm256_or_si256(Bits(line(0), 6, 2, 0), Bits(line(1), 6, 2, 2)),
                           Bits(line(2), 6, 2, 4));
  }
};

struct ReadS8 {
  static constexpr bool kSigned = true;
  static constexpr int kBytes = kTileBlockBytes;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    return LoadBytes(quants + i * 64 + v * 32);
  }
};

struct ReadCode {
  static constexpr bool kSigned = true;
  static constexpr int kBytes = 256;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Codebook));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(codes), ReadU4::Quad(quants, i, v));
  }
};

// Quads already taken apart, which then are those of Like.
template <typename Like>
struct ReadTile {
  static constexpr bool kSigned = Like::kSigned;
  static constexpr int kBytes = kTileBlockBytes;
  static INLINE __m256i Quad(const uint8_t* quants, int i, int v) {
    return LoadBytes(quants + i * 64 + v * 32);
  }
};

// A format. kBiasBits: log2 of the bias; 0: none.
template <typename R, int group, int bias_bits, bool min, bool multipliers>
struct Format {
  using Reader = R;
  static constexpr int kGroup = group;
  static constexpr int kBiasBits = bias_bits;
  static constexpr bool kMin = min;
  static constexpr bool kMultipliers = multipliers;
  static constexpr bool kJoined = multipliers && min && group == 16;  // kQuadU2
  static constexpr int kGroups = kBlock / kGroup;                     // of a block
  // Quads whose products are added in 16 bits.
  static constexpr int kSegment = kGroup == 16 || (__is_same(R, ReadU5) && kBiasBits == 0) ? 4 : 8;
  // The chunk of packed_layout.h.
  static constexpr int kBlocks = kMultipliers ? 8 : 1;
  static constexpr int kMins = 32;
  static constexpr int kMults = kMin ? 64 : 32;
  static constexpr int kMinMults = kMults + kBlocks * kGroups * 16;
  static constexpr int kQuants =
      !kMultipliers ? kMults : kMinMults + (kMin && !kJoined ? kBlocks * kGroups * 16 : 0);
  static constexpr int kBytes = kQuants + kBlocks * Reader::kBytes;
};

// What a pass reads of x: one block of its tokens, at index t of each.
struct Input {
  const int8_t* quants;  // [t][32]
  const float* scales;
  const float* sums;
  const int16_t* halves;  // [t][2]
  const int16_t* lanes;   // [t][2]; with groups of 16 the second's are 2 * tokens further
  int64_t tokens;         // of the whole task: what lies between one block and the next
  const __m256i* spread;  // for one token alone: [8 quads], each in all lanes
};

// Four bytes in all lanes. With an intrinsic the compiler goes by way of general registers.
INLINE __m256i Broadcast(const void* four_bytes) {
  __m256i result;
  asm("vpbroadcastd %[bytes], %[result]"
      : [result] "=x"(result)
      : [bytes] "m"(*static_cast<const int32_t(*)[1]>(four_bytes)));
  return result;
}

// The steps of a dot, each as one piece: with intrinsics the compiler gathers the additions behind
// the products, and spills what piles up.

// sum += w x in 16 bits.
INLINE void AddProducts(__m256i& sum, __m256i w, __m256i x) {
  __m256i product;
  asm("vpmaddubsw %[x], %[w], %[product]\n\tvpaddw %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [w] "x"(w), [x] "x"(x));
}

// The same with x in memory: one instruction less to decode and dispatch.
INLINE void AddProducts(__m256i& sum, __m256i w, const __m256i* x) {
  __m256i product;
  asm("vpmaddubsw %[x], %[w], %[product]\n\tvpaddw %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [w] "x"(w), [x] "m"(*x));
}

// sum += w x in 32 bits; magnitude: |w|.
INLINE void AddSignedProducts(__m256i& sum, __m256i w, __m256i magnitude, __m256i x) {
  __m256i product;
  asm("vpsignb %[w], %[x], %[product]\n\tvpmaddubsw %[product], %[magnitude], %[product]\n\t"
      "vpmaddwd %[ones], %[product], %[product]\n\tvpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [w] "x"(w), [magnitude] "x"(magnitude), [x] "x"(x), [ones] "x"(_mm256_set1_epi16(1)));
}

INLINE void AddSignedProducts(__m256i& sum, const __m256i* w, __m256i magnitude, __m256i x) {
  __m256i product;
  asm("vpsignb %[w], %[x], %[product]\n\tvpmaddubsw %[product], %[magnitude], %[product]\n\t"
      "vpmaddwd %[ones], %[product], %[product]\n\tvpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [w] "m"(*w), [magnitude] "x"(magnitude), [x] "x"(x), [ones] "x"(_mm256_set1_epi16(1)));
}

// |w| times x with the sign of w: two products at most, 2 * 128 * 127 = 32512.
template <typename R, int kTokens>
INLINE void SignedDots(const uint8_t* quants, const Input& x, __m256i (&dot)[kTokens][2]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    __m256i w[2], magnitude[2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      w[v] = R::Quad(quants, i, v);
      magnitude[v] = _mm256_abs_epi8(w[v]);
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const __m256i xt = kTokens == 1 ? x.spread[i] : Broadcast(x.quants + t * kBlock + i * 4);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        if (i == 0) dot[t][v] = _mm256_setzero_si256();
        if constexpr (R::kBytes == kTileBlockBytes) {
          const uint8_t* at = quants + i * 64 + v * 32;
          AddSignedProducts(dot[t][v], reinterpret_cast<const __m256i*>(at), magnitude[v], xt);
        } else {
          AddSignedProducts(dot[t][v], w[v], magnitude[v], xt);
        }
      }
    }
  }
}

// Dots of a block with the rows of a panel, times the multipliers of their groups.
// multipliers: [kGroups][2 v], 16 bits, each row's twice.
template <typename F, typename R, int kTokens>
INLINE void Dots(const uint8_t* quants, const __m256i* multipliers, const Input& x,
                 __m256i (&dot)[kTokens][2]) {
  if constexpr (R::kSigned) {
    SignedDots<R, kTokens>(quants, x, dot);
    return;
  }
  constexpr bool kSpread = kTokens == 1;
#pragma GCC unroll 2
  for (int segment = 0; segment < 8; segment += F::kSegment) {
    const int g = F::kGroups == 1 ? 0 : segment / 4;
    const int16_t* bias = x.lanes + g * 2 * x.tokens;
    __m256i part[kTokens][2];
#pragma GCC unroll 8
    for (int i = 0; i < F::kSegment; ++i) {
      __m256i w[2];
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) w[v] = R::Quad(quants, segment + i, v);
#pragma GCC unroll 12
      for (int t = 0; t < kTokens; ++t) {
        const __m256i* const spread = x.spread + segment + i;
        __m256i xt = _mm256_setzero_si256();
        if (kSpread && i == 0) xt = *spread;
        if (!kSpread) xt = Broadcast(x.quants + t * kBlock + (segment + i) * 4);
        __m256i excess = _mm256_setzero_si256();
        if (F::kBiasBits > 0 && i == 0) {
          excess = _mm256_slli_epi16(Broadcast(bias + 2 * t), F::kBiasBits);
        }
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          if (i > 0 && kSpread) {
            AddProducts(part[t][v], w[v], spread);
          } else if (i > 0) {
            AddProducts(part[t][v], w[v], xt);
          } else {
            part[t][v] = _mm256_maddubs_epi16(w[v], xt);
            if (F::kBiasBits > 0) part[t][v] = _mm256_sub_epi16(part[t][v], excess);
          }
        }
      }
    }
#pragma GCC unroll 12
    for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const __m256i m = F::kMultipliers ? multipliers[g * 2 + v] : _mm256_set1_epi16(1);
        const __m256i wide = _mm256_madd_epi16(part[t][v], m);
        dot[t][v] = segment == 0 ? wide : _mm256_add_epi32(dot[t][v], wide);
      }
    }
  }
}

}  // namespace
}  // namespace hexad::cpu
