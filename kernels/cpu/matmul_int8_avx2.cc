// Panel products with int8 activations for AVX2, FMA and F16C; like matmul_avx2.cc compiled with
// those flags and free of library headers.
//
// A 32-bit lane is an output row: vpmaddubsw multiplies 4 consecutive weights of 8 rows by the same
// 4 bytes of x, so that nothing is ever added across lanes.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_panel.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

constexpr int kBlock = 32;  // values that share a scale of x

// A Reader gives quad i (a constant after unrolling) of rows 8v..8v+7 from the `weights` of a
// block.
//   kBlockBytes  of 32 values of 16 rows
//   kWiden       quads whose products a signed 16-bit lane holds: kWiden * 2 * largest * 127
//   kTokens      that a pass takes, as the registers allow

// 8 * 2 * 15 * 127 = 30480.
struct ReadU4 {
  static constexpr bool kSigned = false;
  static constexpr int kBlockBytes = 256, kWiden = 8, kTokens = 6;
  static INLINE __m256i Quad(const uint8_t* weights, int i, int v) {
    __m256i bytes = LoadBytes(weights + i / 2 * 64 + v * 32);
    if (i % 2 != 0) bytes = _mm256_srli_epi16(bytes, 4);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
  }
};

// 4 * 2 * 31 * 127 = 31496.
struct ReadU5 {
  static constexpr bool kSigned = false;
  static constexpr int kBlockBytes = 320, kWiden = 4, kTokens = 6;
  static INLINE __m256i Quad(const uint8_t* weights, int i, int v) {
    __m256i high = LoadBytes(weights + 256 + v * 32);
    high = i < 4 ? _mm256_slli_epi16(high, 4 - i) : _mm256_srli_epi16(high, i - 4);
    high = _mm256_and_si256(high, _mm256_set1_epi8(16));
    return _mm256_or_si256(high, ReadU4::Quad(weights, i, v));
  }
};

// 2 * 2 * 63 * 127 = 32004.
struct ReadU6 {
  static constexpr bool kSigned = false;
  static constexpr int kBlockBytes = 384, kWiden = 2, kTokens = 4;
  static INLINE __m256i Quad(const uint8_t* weights, int i, int v) {
    const int field = i % 4 * 2;
    __m256i high = LoadBytes(weights + 256 + i / 4 * 64 + v * 32);
    if (field < 4) high = _mm256_slli_epi16(high, 4 - field);
    if (field > 4) high = _mm256_srli_epi16(high, field - 4);
    high = _mm256_and_si256(high, _mm256_set1_epi8(48));
    return _mm256_or_si256(high, ReadU4::Quad(weights, i, v));
  }
};

// |w| times x with the sign of w: 2 * 128 * 127 = 32512.
struct ReadS8 {
  static constexpr bool kSigned = true;
  static constexpr int kBlockBytes = 512, kWiden = 1, kTokens = 4;
  static INLINE __m256i Quad(const uint8_t* weights, int i, int v) {
    return LoadBytes(weights + i * 64 + v * 32);
  }
};

// Quads already taken apart, which then are those of Like.
template <typename Like>
struct ReadTile {
  static constexpr bool kSigned = Like::kSigned;
  static constexpr int kBlockBytes = 512, kWiden = Like::kWiden, kTokens = Like::kTokens;
  static INLINE __m256i Quad(const uint8_t* weights, int i, int v) {
    return LoadBytes(weights + i * 64 + v * 32);
  }
};

// What a pass reads of x: the same block of kTokens tokens.
struct Input {
  const int8_t* quants;  // [kTokens, 32]
  const float* scales;   // [kTokens]
  const int32_t* sums;   // [kTokens] of the block's first group, and `tokens` further the second's
  int64_t tokens;        // of the whole task: what lies between one block and the next
};

INLINE __m256i BroadcastQuad(const int8_t* quad) {
  int32_t bits;
  __builtin_memcpy(&bits, quad, sizeof(bits));
  return _mm256_set1_epi32(bits);
}

// a + b, here and now: integer additions that the compiler reorders pile up in memory.
INLINE __m256i Add16(__m256i a, __m256i b) {
  __m256i sum = _mm256_add_epi16(a, b);
  asm("" : "+x"(sum));
  return sum;
}

INLINE __m256i Add32(__m256i a, __m256i b) {
  __m256i sum = _mm256_add_epi32(a, b);
  asm("" : "+x"(sum));
  return sum;
}

// Exact dots of quads kFirst..kFirst+kQuads-1 of a block.
template <typename Reader, int kFirst, int kQuads, int kTokens>
INLINE void Dot(const uint8_t* weights, const Input& x, __m256i (&dot)[kTokens][2]) {
  constexpr int kWiden = Reader::kWiden < kQuads ? Reader::kWiden : kQuads;
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int segment = 0; segment < kQuads; segment += kWiden) {
    __m256i part[kTokens][2];
#pragma GCC unroll 8
    for (int i = 0; i < kWiden; ++i) {
      const int quad = kFirst + segment + i;
      const __m256i w0 = Reader::Quad(weights, quad, 0), w1 = Reader::Quad(weights, quad, 1);
#pragma GCC unroll 6
      for (int t = 0; t < kTokens; ++t) {
        const __m256i xt = BroadcastQuad(x.quants + t * kBlock + quad * 4);
        __m256i p0, p1;
        if (Reader::kSigned) {
          p0 = _mm256_maddubs_epi16(_mm256_abs_epi8(w0), _mm256_sign_epi8(xt, w0));
          p1 = _mm256_maddubs_epi16(_mm256_abs_epi8(w1), _mm256_sign_epi8(xt, w1));
        } else {
          p0 = _mm256_maddubs_epi16(w0, xt);
          p1 = _mm256_maddubs_epi16(w1, xt);
        }
        part[t][0] = i == 0 ? p0 : Add16(part[t][0], p0);
        part[t][1] = i == 0 ? p1 : Add16(part[t][1], p1);
      }
    }
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const __m256i wide = _mm256_madd_epi16(part[t][v], ones);
        dot[t][v] = segment == 0 ? wide : Add32(dot[t][v], wide);
      }
    }
  }
}

// acc += one group of a block.
template <typename Reader, int kFirst, int kQuads, int kTokens>
INLINE void Group(const PackedFormat& format, const GroupScale& scale, const uint8_t* weights,
                  const Input& x, __m256 (&acc)[kTokens][2]) {
  __m256i dot[kTokens][2];
  Dot<Reader, kFirst, kQuads, kTokens>(weights, x, dot);
  const int bias_bits = format.bias == 0 ? 0 : __builtin_ctz(static_cast<unsigned>(format.bias));
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    const __m256 x_scale = _mm256_broadcast_ss(x.scales + t);
    const int32_t* sum = x.sums + kFirst / 4 * x.tokens + t;
    if (format.bias != 0) {
      const __m256i excess = _mm256_set1_epi32(*sum << bias_bits);
      dot[t][0] = _mm256_sub_epi32(dot[t][0], excess);
      dot[t][1] = _mm256_sub_epi32(dot[t][1], excess);
    }
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      acc[t][v] = _mm256_fmadd_ps(_mm256_mul_ps(scale.scale[v], x_scale),
                                  _mm256_cvtepi32_ps(dot[t][v]), acc[t][v]);
    }
    if (format.has_min) {
      const __m256 x_sum = _mm256_mul_ps(x_scale, _mm256_set1_ps(static_cast<float>(*sum)));
      acc[t][0] = _mm256_fmadd_ps(scale.min[0], x_sum, acc[t][0]);
      acc[t][1] = _mm256_fmadd_ps(scale.min[1], x_sum, acc[t][1]);
    }
  }
}

// ---- Few tokens: weights go from memory to registers once. -------------------------------------

constexpr int kMaxDirectTokens = 12;
constexpr int kStreams = 4;

template <typename Reader>
INLINE void Prefetch(const uint8_t* weights) {
#pragma GCC unroll 8
  for (int line = 0; line < Reader::kBlockBytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(weights + line), _MM_HINT_T0);
  }
}

// From a token on, in a block.
template <int kGroup>
INLINE Input InputAt(const Int8PanelTask& task, int64_t token, int64_t block) {
  const int64_t at = block * task.tokens + token;
  const int32_t* sums = task.x_sums + block * (kBlock / kGroup) * task.tokens + token;
  return {task.x + at * kBlock, task.x_scales + at, sums, task.tokens};
}

template <int kGroup>
INLINE void NextBlock(Input& x) {
  x.quants += x.tokens * kBlock;
  x.scales += x.tokens;
  x.sums += x.tokens * (kBlock / kGroup);
}

Int8PanelTask PanelOf(const Int8PanelTask& all, int64_t p) {
  Int8PanelTask task = all;
  task.quants += p * all.panel_bytes;
  task.scales += p * all.panel_bytes;
  task.supers += p * all.panel_bytes;
  task.y += p * kPanelRows;
  const int64_t left = all.rows - p * kPanelRows;
  task.rows = left < kPanelRows ? left : kPanelRows;
  task.panels = 1;
  return task;
}

template <typename Reader, int kGroup, int kTokens>
void Direct(const Int8PanelTask& task, int64_t token) {
  constexpr int kAhead = 8;  // blocks
  Input x = InputAt<kGroup>(task, token, 0);
  const uint8_t* weights = task.quants;
  __m256 acc[kTokens][2];
  for (int t = 0; t < kTokens; ++t) acc[t][0] = acc[t][1] = _mm256_setzero_ps();
  for (int64_t b = 0; b < task.in / kBlock; ++b) {
    Prefetch<Reader>(weights + kAhead * Reader::kBlockBytes);
    if constexpr (kGroup == 32) {
      Group<Reader, 0, 8, kTokens>(task.format, LoadGroupScale(task, b), weights, x, acc);
    } else {
      Group<Reader, 0, 4, kTokens>(task.format, LoadGroupScale(task, 2 * b), weights, x, acc);
      Group<Reader, 4, 4, kTokens>(task.format, LoadGroupScale(task, 2 * b + 1), weights, x, acc);
    }
    weights += Reader::kBlockBytes;
    NextBlock<kGroup>(x);
  }
  for (int t = 0; t < kTokens; ++t) StorePanelRow(task, token + t, acc[t][0], acc[t][1]);
}

// One token, kPanels panels side by side: more streams than one get more out of the memory.
template <typename Reader, int kGroup, int kPanels>
void DirectPanels(const Int8PanelTask& task) {
  constexpr int kAhead = 8;
  Input x = InputAt<kGroup>(task, 0, 0);
  Int8PanelTask panel[kPanels];
  __m256 acc[kPanels][1][2];
  for (int p = 0; p < kPanels; ++p) {
    panel[p] = PanelOf(task, p);
    acc[p][0][0] = acc[p][0][1] = _mm256_setzero_ps();
  }
  const uint8_t* weights = task.quants;
  for (int64_t b = 0; b < task.in / kBlock; ++b) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* w = weights + p * task.panel_bytes;
      Prefetch<Reader>(w + kAhead * Reader::kBlockBytes);
      if constexpr (kGroup == 32) {
        Group<Reader, 0, 8, 1>(task.format, LoadGroupScale(panel[p], b), w, x, acc[p]);
      } else {
        Group<Reader, 0, 4, 1>(task.format, LoadGroupScale(panel[p], 2 * b), w, x, acc[p]);
        Group<Reader, 4, 4, 1>(task.format, LoadGroupScale(panel[p], 2 * b + 1), w, x, acc[p]);
      }
    }
    weights += Reader::kBlockBytes;
    NextBlock<kGroup>(x);
  }
  for (int p = 0; p < kPanels; ++p) StorePanelRow(panel[p], 0, acc[p][0][0], acc[p][0][1]);
}

// As few passes as there can be, of about one size.
template <typename Reader>
int NextTokens(int64_t left) {
  const int64_t passes = (left + Reader::kTokens - 1) / Reader::kTokens;
  return static_cast<int>((left + passes - 1) / passes);
}

template <typename Reader, int kGroup>
void DirectTokens(const Int8PanelTask& task) {
  for (int64_t token = 0, n = 0; token < task.tokens; token += n) {
    n = NextTokens<Reader>(task.tokens - token);
    switch (n) {
      case 1:
        Direct<Reader, kGroup, 1>(task, token);
        break;
      case 2:
        Direct<Reader, kGroup, 2>(task, token);
        break;
      case 3:
        Direct<Reader, kGroup, 3>(task, token);
        break;
      case 4:
        Direct<Reader, kGroup, 4>(task, token);
        break;
      case 5:
        if constexpr (Reader::kTokens >= 5) Direct<Reader, kGroup, 5>(task, token);
        break;
      default:
        if constexpr (Reader::kTokens >= 6) Direct<Reader, kGroup, 6>(task, token);
        break;
    }
  }
}

// ---- Many tokens: a tile of weights is taken apart once. ---------------------------------------

constexpr int kTileBlocks = 8;
constexpr int kTileTokens = 48;  // whose sums wait beside the tile

struct Tile {
  alignas(64) uint8_t weights[kTileBlocks * 512];
  alignas(64) GroupScale scales[kTileBlocks * 2];
  alignas(64) __m256 acc[kTileTokens][2];
};

template <typename Reader, int kGroup>
void DecodeTile(const Int8PanelTask& task, int64_t first, int blocks, Tile& tile) {
  const uint8_t* weights = task.quants + first * Reader::kBlockBytes;
  uint8_t* out = tile.weights;
  for (int b = 0; b < blocks; ++b, weights += Reader::kBlockBytes) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i, out += 64) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out), Reader::Quad(weights, i, 0));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + 32), Reader::Quad(weights, i, 1));
    }
  }
  constexpr int kGroups = kBlock / kGroup;
  for (int g = 0; g < blocks * kGroups; ++g) {
    tile.scales[g] = LoadGroupScale(task, first * kGroups + g);
  }
}

template <typename Reader, int kGroup, int kTokens>
void TileTokens(const Int8PanelTask& task, Tile& tile, int64_t first, int blocks, int64_t token,
                __m256 (*sums)[2]) {
  using Quads = ReadTile<Reader>;
  Input x = InputAt<kGroup>(task, token, first);
  const uint8_t* weights = tile.weights;
  const GroupScale* scales = tile.scales;
  __m256 acc[kTokens][2];
  for (int t = 0; t < kTokens; ++t) acc[t][0] = sums[t][0], acc[t][1] = sums[t][1];
  for (int b = 0; b < blocks; ++b) {
    if constexpr (kGroup == 32) {
      Group<Quads, 0, 8, kTokens>(task.format, scales[0], weights, x, acc);
    } else {
      Group<Quads, 0, 4, kTokens>(task.format, scales[0], weights, x, acc);
      Group<Quads, 4, 4, kTokens>(task.format, scales[1], weights, x, acc);
    }
    weights += Quads::kBlockBytes;
    scales += kBlock / kGroup;
    NextBlock<kGroup>(x);
  }
  for (int t = 0; t < kTokens; ++t) sums[t][0] = acc[t][0], sums[t][1] = acc[t][1];
}

template <typename Reader, int kGroup>
void TileAllTokens(const Int8PanelTask& task, Tile& tile, int64_t first, int blocks, int64_t token,
                   int tokens) {
  for (int t = 0, n = 0; t < tokens; t += n) {
    n = NextTokens<Reader>(tokens - t);
    __m256(*const sums)[2] = tile.acc + t;
    switch (n) {
      case 1:
        TileTokens<Reader, kGroup, 1>(task, tile, first, blocks, token + t, sums);
        break;
      case 2:
        TileTokens<Reader, kGroup, 2>(task, tile, first, blocks, token + t, sums);
        break;
      case 3:
        TileTokens<Reader, kGroup, 3>(task, tile, first, blocks, token + t, sums);
        break;
      case 4:
        TileTokens<Reader, kGroup, 4>(task, tile, first, blocks, token + t, sums);
        break;
      case 5:
        if constexpr (Reader::kTokens >= 5) {
          TileTokens<Reader, kGroup, 5>(task, tile, first, blocks, token + t, sums);
        }
        break;
      default:
        if constexpr (Reader::kTokens >= 6) {
          TileTokens<Reader, kGroup, 6>(task, tile, first, blocks, token + t, sums);
        }
        break;
    }
  }
}

template <typename Reader, int kGroup>
void Gemm(const Int8PanelTask& task) {
  Tile tile;
  const int64_t all_blocks = task.in / kBlock;
  for (int64_t token = 0; token < task.tokens; token += kTileTokens) {
    const int64_t left = task.tokens - token;
    const int tokens = static_cast<int>(left < kTileTokens ? left : kTileTokens);
    for (int t = 0; t < tokens; ++t) tile.acc[t][0] = tile.acc[t][1] = _mm256_setzero_ps();
    for (int64_t first = 0; first < all_blocks; first += kTileBlocks) {
      const int64_t rest = all_blocks - first;
      const int blocks = static_cast<int>(rest < kTileBlocks ? rest : kTileBlocks);
      DecodeTile<Reader, kGroup>(task, first, blocks, tile);
      TileAllTokens<Reader, kGroup>(task, tile, first, blocks, token, tokens);
    }
    for (int t = 0; t < tokens; ++t) {
      StorePanelRow(task, token + t, tile.acc[t][0], tile.acc[t][1]);
    }
  }
}

template <typename Reader, int kGroup>
void Panels(const Int8PanelTask& task) {
  int64_t p = 0;
  if (task.tokens == 1) {
    for (; p + kStreams <= task.panels; p += kStreams) {
      Int8PanelTask some = PanelOf(task, p);
      some.rows = task.rows - p * kPanelRows;
      DirectPanels<Reader, kGroup, kStreams>(some);
    }
  }
  for (; p < task.panels; ++p) {
    if (task.tokens > kMaxDirectTokens) {
      Gemm<Reader, kGroup>(PanelOf(task, p));
    } else {
      DirectTokens<Reader, kGroup>(PanelOf(task, p));
    }
  }
}

}  // namespace

void Avx2Int8Panels(const Int8PanelTask& task) {
  switch (task.format.kind) {
    case WeightKind::kQuadU4:
      return task.format.group == 32 ? Panels<ReadU4, 32>(task) : Panels<ReadU4, 16>(task);
    case WeightKind::kQuadU5:
      return Panels<ReadU5, 32>(task);
    case WeightKind::kQuadU6:
      return Panels<ReadU6, 16>(task);
    default:
      return Panels<ReadS8, 32>(task);
  }
}

}  // namespace hexad::cpu
