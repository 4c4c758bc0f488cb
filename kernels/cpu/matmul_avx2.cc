// Panel products for AVX2, FMA and F16C. Compiled with those flags, so that an inline function of a
// shared header instantiated here could replace the portable one at link time: everything is in the
// unnamed namespace and no library header is included.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_panel.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

// A Decoder turns value `i` (of 8 consecutive ones, i a constant after unrolling) of rows 8v..8v+7
// into floats; `octet` points at the quants of those 8 values. kOctetBytes: to the next 8 values.

struct DecodeU4 {
  static constexpr int kOctetBytes = 64;
  static constexpr int kGroupsOfOneToken = 4, kGroupsOfTwoTokens = 2;
  // A nibble stays where it is in the word and counts 16^i times too much, for which x is made
  // smaller (PrepareTask): one AND and one conversion a value. The top one would be a sign.
  static INLINE __m256 Value(const uint8_t* octet, int i, int v) {
    const __m256i word = LoadBytes(octet + v * 32);
    return _mm256_cvtepi32_ps(i == 7 ? _mm256_srli_epi32(word, 28)
                                     : _mm256_and_si256(word, _mm256_set1_epi32(15 << (4 * i))));
  }
};

struct DecodeS8 {
  static constexpr int kOctetBytes = 128;
  static constexpr int kGroupsOfOneToken = 2, kGroupsOfTwoTokens = 2;
  static INLINE __m256 Value(const uint8_t* octet, int i, int v) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(octet + i * 16 + v * 8));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
};

// sum += the finished chain of a group, half v of its rows. group_sum: of x, where there are mins.
INLINE __m256 AddGroup(const PackedFormat& format, const GroupScale& s, int v, __m256 chain,
                       const float* group_sum, __m256 sum) {
  sum = _mm256_fmadd_ps(s.scale[v], chain, sum);
  return format.has_min ? _mm256_fmadd_ps(s.min[v], _mm256_broadcast_ss(group_sum), sum) : sum;
}

// What the chain of a group begins with: minus bias times the sum of x.
INLINE __m256 GroupStart(const PanelTask& task, const float* sums, int64_t g) {
  if (task.format.bias == 0) return _mm256_setzero_ps();
  return _mm256_set1_ps(sums[g] * static_cast<float>(-task.format.bias));
}

// 6 x 2 chains, 2 weights and 1 input fill the 16 registers.
constexpr int kChainTokens = 6;

// Tokens of the next pass when `left` are left: as few passes as there can be, of about one size,
// because a pass of one or two tokens leaves most of the FMA units idle.
int NextTokens(int64_t left) {
  const int64_t passes = (left + kChainTokens - 1) / kChainTokens;
  return static_cast<int>((left + passes - 1) / passes);
}

// ---- Few tokens: weights go from memory to registers once. -------------------------------------

constexpr int kMaxDirectTokens = 12;

// Groups read side by side are no stream that the hardware would recognise. Running past the panel
// fetches the next one.
template <typename Decoder>
INLINE void Prefetch(const uint8_t* octet) {
#pragma GCC unroll 8
  for (int line = 0; line < Decoder::kOctetBytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(octet + line), _MM_HINT_T0);
  }
}

// Groups g..g+kGroups-1 side by side: 2 * kGroups * kTokens independent chains hide the latency of
// FMA. acc: sums so far, by token.
template <typename Decoder, int kGroup, int kTokens, int kGroups>
INLINE void DirectGroups(const PanelTask& task, int64_t g, __m256 (&acc)[kTokens][2]) {
  constexpr int kGroupBytes = kGroup / 8 * Decoder::kOctetBytes;
  constexpr int kAhead = 8;  // groups
  const int64_t groups = task.in / kGroup;
  const uint8_t* quants = task.quants + g * kGroupBytes;
  const float* x = task.x + g * kGroup;
  __m256 chain[kGroups][kTokens][2];
#pragma GCC unroll 4
  for (int n = 0; n < kGroups; ++n) {
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      chain[n][t][0] = chain[n][t][1] = GroupStart(task, task.sums + t * groups, g + n);
    }
  }
  for (int octet = 0; octet < kGroup / 8; ++octet) {
#pragma GCC unroll 4
    for (int n = 0; n < kGroups; ++n) Prefetch<Decoder>(quants + (n + kAhead) * kGroupBytes);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
#pragma GCC unroll 4
      for (int n = 0; n < kGroups; ++n) {
        const __m256 w0 = Decoder::Value(quants + n * kGroupBytes, i, 0);
        const __m256 w1 = Decoder::Value(quants + n * kGroupBytes, i, 1);
#pragma GCC unroll 6
        for (int t = 0; t < kTokens; ++t) {
          const __m256 xi = _mm256_broadcast_ss(x + t * task.in + n * kGroup + i);
          chain[n][t][0] = _mm256_fmadd_ps(w0, xi, chain[n][t][0]);
          chain[n][t][1] = _mm256_fmadd_ps(w1, xi, chain[n][t][1]);
        }
      }
    }
    quants += Decoder::kOctetBytes;
    x += 8;
  }
#pragma GCC unroll 4
  for (int n = 0; n < kGroups; ++n) {
    const GroupScale s = LoadGroupScale(task, g + n);
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      const float* group_sum = task.sums + t * groups + g + n;
      acc[t][0] = AddGroup(task.format, s, 0, chain[n][t][0], group_sum, acc[t][0]);
      acc[t][1] = AddGroup(task.format, s, 1, chain[n][t][1], group_sum, acc[t][1]);
    }
  }
}

template <typename Decoder, int kGroup, int kTokens>
void Direct(const PanelTask& task) {
  constexpr int kGroups = kTokens == 1   ? Decoder::kGroupsOfOneToken
                          : kTokens == 2 ? Decoder::kGroupsOfTwoTokens
                                         : 1;
  const int64_t groups = task.in / kGroup;
  __m256 acc[kTokens][2];
  for (int t = 0; t < kTokens; ++t) acc[t][0] = acc[t][1] = _mm256_setzero_ps();
  int64_t g = 0;
  for (; g + kGroups <= groups; g += kGroups) {
    DirectGroups<Decoder, kGroup, kTokens, kGroups>(task, g, acc);
  }
  if constexpr (kGroups > 2) {
    if (groups - g >= 2) {
      DirectGroups<Decoder, kGroup, kTokens, 2>(task, g, acc);
      g += 2;
    }
  }
  for (; g < groups; ++g) DirectGroups<Decoder, kGroup, kTokens, 1>(task, g, acc);
  for (int t = 0; t < kTokens; ++t) StorePanelRow(task, t, acc[t][0], acc[t][1]);
}

template <typename Decoder, int kGroup>
void DirectTokens(PanelTask task) {
  const int64_t groups = task.in / kGroup;
  for (int64_t left = task.tokens; left > 0; left -= task.tokens) {
    task.tokens = NextTokens(left);
    switch (task.tokens) {
      case 1:
        Direct<Decoder, kGroup, 1>(task);
        break;
      case 2:
        Direct<Decoder, kGroup, 2>(task);
        break;
      case 3:
        Direct<Decoder, kGroup, 3>(task);
        break;
      case 4:
        Direct<Decoder, kGroup, 4>(task);
        break;
      case 5:
        Direct<Decoder, kGroup, 5>(task);
        break;
      default:
        Direct<Decoder, kGroup, 6>(task);
        break;
    }
    task.x += task.tokens * task.in;
    task.y += task.tokens * task.y_stride;
    if (task.sums != nullptr) task.sums += task.tokens * groups;
  }
}

// ---- Many tokens: a tile of weights becomes floats once. ------------------------------------

constexpr int kTileValues = 256;  // of k: 16 KiB of floats, half the first-level cache
constexpr int kTileTokens = 96;   // whose sums wait beside the tile

struct Tile {
  alignas(64) float weights[kTileValues * kPanelRows];
  alignas(64) float scales[kTileValues / 16 * kPanelRows];
  alignas(64) float mins[kTileValues / 16 * kPanelRows];
  alignas(64) float acc[kTileTokens * kPanelRows];
};

// Values k0..k0+count-1 of the panel; count is a multiple of 16.
template <typename Decoder>
void DecodeTile(const PanelTask& task, int64_t k0, int count, Tile& tile) {
  const uint8_t* octet = task.quants + k0 / 8 * Decoder::kOctetBytes;
  float* out = tile.weights;
  for (int k = 0; k < count; k += 8, octet += Decoder::kOctetBytes) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i, out += kPanelRows) {
      _mm256_store_ps(out, Decoder::Value(octet, i, 0));
      _mm256_store_ps(out + 8, Decoder::Value(octet, i, 1));
    }
  }
  const int64_t first = k0 / task.format.group;
  for (int g = 0; g < count / task.format.group; ++g) {
    const GroupScale s = LoadGroupScale(task, first + g);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      _mm256_store_ps(tile.scales + g * kPanelRows + v * 8, s.scale[v]);
      _mm256_store_ps(tile.mins + g * kPanelRows + v * 8, s.min[v]);
    }
  }
}

// One group of the tile times kTokens tokens, added to their sums in acc.
template <int kTokens>
INLINE void TileGroup(const PanelTask& task, const Tile& tile, int g, int length, int64_t k,
                      int64_t token, float* acc) {
  const int64_t groups = task.in / task.format.group;
  const int64_t global_group = k / task.format.group;
  const float* x[kTokens];
  __m256 chain[kTokens][2];
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    x[t] = task.x + (token + t) * task.in + k;
    chain[t][0] = chain[t][1] =
        task.format.bias == 0 ? _mm256_setzero_ps()
                              : GroupStart(task, task.sums + (token + t) * groups, global_group);
  }
  const float* weights = tile.weights + g * task.format.group * kPanelRows;
  for (int i = 0; i < length; ++i, weights += kPanelRows) {
    const __m256 w0 = _mm256_load_ps(weights), w1 = _mm256_load_ps(weights + 8);
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      const __m256 xi = _mm256_broadcast_ss(x[t] + i);
      chain[t][0] = _mm256_fmadd_ps(w0, xi, chain[t][0]);
      chain[t][1] = _mm256_fmadd_ps(w1, xi, chain[t][1]);
    }
  }
  const float* scales = tile.scales + g * kPanelRows;
  const float* mins = tile.mins + g * kPanelRows;
  const GroupScale s = {{_mm256_load_ps(scales), _mm256_load_ps(scales + 8)},
                        {_mm256_load_ps(mins), _mm256_load_ps(mins + 8)}};
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    const float* group_sum = task.sums + (token + t) * groups + global_group;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* sum = acc + t * kPanelRows + v * 8;
      _mm256_store_ps(sum,
                      AddGroup(task.format, s, v, chain[t][v], group_sum, _mm256_load_ps(sum)));
    }
  }
}

template <int kTokens>
void TileTokens(const PanelTask& task, const Tile& tile, int64_t k0, int count, int64_t token,
                float* acc) {
  const int group = task.format.group;
  for (int begin = 0; begin < count; begin += group) {
    const int length = count - begin < group ? count - begin : group;
    TileGroup<kTokens>(task, tile, begin / group, length, k0 + begin, token, acc);
  }
}

void TileAllTokens(const PanelTask& task, Tile& tile, int64_t k0, int count, int64_t first,
                   int tokens) {
  for (int t = 0, n = 0; t < tokens; t += n) {
    n = NextTokens(tokens - t);
    float* acc = tile.acc + t * kPanelRows;
    switch (n) {
      case 1:
        TileTokens<1>(task, tile, k0, count, first + t, acc);
        break;
      case 2:
        TileTokens<2>(task, tile, k0, count, first + t, acc);
        break;
      case 3:
        TileTokens<3>(task, tile, k0, count, first + t, acc);
        break;
      case 4:
        TileTokens<4>(task, tile, k0, count, first + t, acc);
        break;
      case 5:
        TileTokens<5>(task, tile, k0, count, first + t, acc);
        break;
      default:
        TileTokens<6>(task, tile, k0, count, first + t, acc);
        break;
    }
  }
}

template <typename Decoder>
void Gemm(const PanelTask& task) {
  Tile tile;
  for (int64_t first = 0; first < task.tokens; first += kTileTokens) {
    const int tokens =
        static_cast<int>(task.tokens - first < kTileTokens ? task.tokens - first : kTileTokens);
    for (int i = 0; i < tokens * kPanelRows; i += 8) {
      _mm256_store_ps(tile.acc + i, _mm256_setzero_ps());
    }
    for (int64_t k0 = 0; k0 < task.in; k0 += kTileValues) {
      const int count = static_cast<int>(task.in - k0 < kTileValues ? task.in - k0 : kTileValues);
      DecodeTile<Decoder>(task, k0, count, tile);
      TileAllTokens(task, tile, k0, count, first, tokens);
    }
    for (int t = 0; t < tokens; ++t) {
      const float* acc = tile.acc + t * kPanelRows;
      StorePanelRow(task, first + t, _mm256_load_ps(acc), _mm256_load_ps(acc + 8));
    }
  }
}

template <typename Decoder>
void Panel(const PanelTask& task) {
  if (task.tokens > kMaxDirectTokens) {
    Gemm<Decoder>(task);
  } else if (task.format.group == 16) {
    DirectTokens<Decoder, 16>(task);
  } else {
    DirectTokens<Decoder, 32>(task);
  }
}

}  // namespace

void Avx2Panel(const PanelTask& task) {
  if (task.format.kind == WeightKind::kS8) return Panel<DecodeS8>(task);
  Panel<DecodeU4>(task);
}

void Avx2Prepare(const PrepareTask& task) {
  const __m256 factors =
      _mm256_setr_ps(1.0f, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1.0f);
  const int64_t values = task.tokens * task.in;
  if (task.shifted != nullptr) {
    for (int64_t i = 0; i < values; i += 8) {
      _mm256_storeu_ps(task.shifted + i, _mm256_mul_ps(_mm256_loadu_ps(task.x + i), factors));
    }
  }
  if (task.sums == nullptr) return;
  for (int64_t g = 0; g < values / task.group; ++g) {
    const float* x = task.x + g * task.group;
    __m256 sum = _mm256_add_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8));
    if (task.group == 32) {
      sum = _mm256_add_ps(sum, _mm256_add_ps(_mm256_loadu_ps(x + 16), _mm256_loadu_ps(x + 24)));
    }
    task.sums[g] = SumLanes(sum);
  }
}

}  // namespace hexad::cpu
