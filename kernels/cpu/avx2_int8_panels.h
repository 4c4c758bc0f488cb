#pragma once

// Panel products with int8 activations for AVX2, FMA and F16C, of one Format. Static, as in
// avx2_vector.h.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2_int8_quads.h"
#include "kernels/cpu/avx2_int8_sums.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

// ---- Few tokens: weights go from memory to registers. ------------------------------------------

// Panels side by side, far apart so that each is a stream of its own: one stream gets less out of
// the memory than four, eight less again. Fetching further ahead than needed costs 4 % (2 KiB).
constexpr int kStreams = 4;
constexpr int kAhead = 768;  // bytes of a stream

INLINE void Prefetch(const uint8_t* bytes, int count) {
#pragma GCC unroll 16
  for (int line = 0; line < count; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(bytes + line), _MM_HINT_T0);
  }
}

// One panel's chunk and what is to come of the weights meanwhile.
struct Stream {
  const uint8_t* chunk;
  const uint8_t* ahead;
};

// A block of kFirst tokens, then kSecond tokens, of one panel.
template <typename F, int kFirst, int kSecond>
INLINE void DirectBlock(const Stream& stream, int b, const Input& x, float* sums) {
  const uint8_t* const quants = stream.chunk + F::kQuants + b * F::Reader::kBytes;
  __m256i multipliers[4];
  LoadMultipliers<F>(stream.chunk, b, multipliers);
  ChunkScales scales{};
  if constexpr (F::kMultipliers) {
    Prefetch(stream.ahead + F::kQuants + b * F::Reader::kBytes, F::Reader::kBytes);
  } else {
    Prefetch(stream.ahead, F::kBytes);
    scales = LoadScales<F>(stream.chunk);
  }
  Block<F, typename F::Reader, kFirst>(quants, multipliers, scales, x, sums);
  if constexpr (kSecond > 0) {
    Input second = x;
    SkipTokens<F>(second, kFirst);
    Block<F, typename F::Reader, kSecond>(quants, multipliers, scales, second,
                                          sums + kFirst * kPanelRows);
  }
}

// Panels first, first + stride...: `panels` of them, at most kStreams. A stream goes on with the
// panel after its own: prefetching past the end of one begins the next.
template <typename F, int kFirst, int kSecond>
void Direct(const Int8PanelTask& task, int64_t first, int panels, int64_t stride) {
  constexpr int kTokens = kFirst + kSecond;
  constexpr int kSums = kTokens * kPanelRows;
  alignas(32) float sums[kStreams * kSums];
  alignas(32) float parts[F::kMultipliers ? kStreams * kSums : 1];
  alignas(32) __m256i spread[8];
  for (int p = 0; p < panels; ++p) SetZero<kTokens>(sums + p * kSums);
  Input x = InputAt<F>(task, 0, 0);
  x.spread = spread;
  const uint8_t* chunk = task.panel + first * task.panel_bytes;
  const int64_t chunks = task.in / (kBlock * F::kBlocks);
  const int64_t ahead = kAhead / F::kBytes > 0 ? kAhead / F::kBytes : 1;  // chunks
  for (int64_t c = 0; c < chunks; ++c, chunk += F::kBytes) {
    const auto stream = [&](int p) {
      const uint8_t* own = chunk + p * stride * task.panel_bytes;
      return Stream{own, own + ahead * F::kBytes};
    };
    if constexpr (F::kMultipliers) {
      for (int p = 0; p < panels; ++p) {
        SetZero<kTokens>(parts + p * kSums);
        Prefetch(stream(p).ahead, F::kQuants);
        if constexpr (F::kMin) {
          const uint8_t* w = stream(p).chunk;
          __m256 mins[16];
#pragma GCC unroll 8
          for (int b = 0; b < 8; ++b) LoadMinMultipliers<F>(w, b, mins + 2 * b);
          SubtractMins<F, kTokens>(mins, LoadScales<F>(w), x, sums + p * kSums);
        }
      }
    }
    for (int b = 0; b < F::kBlocks; ++b) {
      if constexpr (kTokens == 1) Spread(x, spread);
      for (int p = 0; p < panels; ++p) {
        float* const to = (F::kMultipliers ? parts : sums) + p * kSums;
        DirectBlock<F, kFirst, kSecond>(stream(p), b, x, to);
      }
      NextBlock<F>(x);
    }
    if constexpr (F::kMultipliers) {
      for (int p = 0; p < panels; ++p) {
        AddSuper<kTokens>(LoadScales<F>(stream(p).chunk), parts + p * kSums, sums + p * kSums);
      }
    }
  }
  for (int p = 0; p < panels; ++p) {
    StoreSums(task, first + p * stride, 0, kTokens, sums + p * kSums);
  }
}

constexpr int kMaxDirectTokens = 8;

template <typename F>
void DirectPanels(const Int8PanelTask& task, int64_t first, int panels, int64_t stride) {
  constexpr bool kSix = kMost<F> >= 6;
  switch (task.tokens) {
    case 1:
      return Direct<F, 1, 0>(task, first, panels, stride);
    case 2:
      return Direct<F, 2, 0>(task, first, panels, stride);
    case 3:
      return Direct<F, 3, 0>(task, first, panels, stride);
    case 4:
      return Direct<F, 4, 0>(task, first, panels, stride);
    case 5:
      return Direct < F, kSix ? 5 : 3, kSix ? 0 : 2 > (task, first, panels, stride);
    case 6:
      return Direct < F, kSix ? 6 : 3, kSix ? 0 : 3 > (task, first, panels, stride);
    case 7:
      return Direct<F, 4, 3>(task, first, panels, stride);
    default:
      return Direct<F, 4, 4>(task, first, panels, stride);
  }
}

// ---- Many tokens: a tile of weights is taken apart once. ---------------------------------------

constexpr int kTileBlocks = 8;
constexpr int kTileTokens = 48;  // whose sums wait beside the tile

struct Tile {
  alignas(64) uint8_t quants[kTileBlocks * kTileBlockBytes];
  alignas(64) __m256i multipliers[kTileBlocks][4];
  alignas(64) __m256 mins[kTileBlocks * 2];
  alignas(64) ChunkScales scales[kTileBlocks];
  alignas(64) float sums[kTileTokens * kPanelRows];
};

template <typename F>
void DecodeTile(const uint8_t* chunk, int blocks, Tile& tile) {
  uint8_t* out = tile.quants;
  for (int b = 0; b < blocks; ++b) {
    const uint8_t* quants = chunk + F::kQuants + b % F::kBlocks * F::Reader::kBytes;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i, out += 64) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(out), F::Reader::Quad(quants, i, 0));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + 32), F::Reader::Quad(quants, i, 1));
    }
    LoadMultipliers<F>(chunk, b, tile.multipliers[b]);
    if constexpr (F::kMultipliers && F::kMin) {
      LoadMinMultipliers<F>(chunk, b, tile.mins + b * 2);
    }
    if (b % F::kBlocks == 0) tile.scales[b] = LoadScales<F>(chunk);
    if (F::kBlocks == 1) chunk += F::kBytes;
  }
}

template <typename F, int kTokens>
void TileTokens(const Int8PanelTask& task, const Tile& tile, int64_t first, int blocks,
                int64_t token, float* sums) {
  Input x = InputAt<F>(task, token, first);
  alignas(32) __m256i spread[8];
  x.spread = spread;
  alignas(32) float parts[F::kMultipliers ? kTokens * kPanelRows : 1];
  if constexpr (F::kMultipliers) {
    SetZero<kTokens>(parts);
    if constexpr (F::kMin) SubtractMins<F, kTokens>(tile.mins, tile.scales[0], x, sums);
  }
  float* const to = F::kMultipliers ? parts : sums;
  for (int b = 0; b < blocks; ++b) {
    if constexpr (kTokens == 1) Spread(x, spread);
    Block<F, ReadTile<typename F::Reader>, kTokens>(tile.quants + b * kTileBlockBytes,
                                                    tile.multipliers[b], tile.scales[b], x, to);
    NextBlock<F>(x);
  }
  if constexpr (F::kMultipliers) AddSuper<kTokens>(tile.scales[0], parts, sums);
}

template <typename F>
void TileAllTokens(const Int8PanelTask& task, Tile& tile, int64_t first, int blocks, int64_t token,
                   int tokens) {
  for (int t = 0, n = 0; t < tokens; t += n) {
    n = NextTokens<F>(tokens - t);
    float* const sums = tile.sums + t * kPanelRows;
    switch (n) {
      case 1:
        TileTokens<F, 1>(task, tile, first, blocks, token + t, sums);
        break;
      case 2:
        TileTokens<F, 2>(task, tile, first, blocks, token + t, sums);
        break;
      case 3:
        TileTokens<F, 3>(task, tile, first, blocks, token + t, sums);
        break;
      case 4:
        TileTokens<F, 4>(task, tile, first, blocks, token + t, sums);
        break;
      case 5:
        if constexpr (kMost<F> >= 5) TileTokens<F, 5>(task, tile, first, blocks, token + t, sums);
        break;
      default:
        if constexpr (kMost<F> >= 6) TileTokens<F, 6>(task, tile, first, blocks, token + t, sums);
        break;
    }
  }
}

template <typename F>
void Gemm(const Int8PanelTask& task, int64_t p, int64_t token, int tokens) {
  Tile tile;
  const uint8_t* chunk = task.panel + p * task.panel_bytes;
  const int64_t all_blocks = task.in / kBlock;
  for (int t = 0; t < tokens; ++t) SetZero<1>(tile.sums + t * kPanelRows);
  for (int64_t first = 0; first < all_blocks; first += kTileBlocks) {
    const int64_t rest = all_blocks - first;
    const int blocks = static_cast<int>(rest < kTileBlocks ? rest : kTileBlocks);
    DecodeTile<F>(chunk, blocks, tile);
    TileAllTokens<F>(task, tile, first, blocks, token, tokens);
    chunk += kTileBlocks / F::kBlocks * F::kBytes;
  }
  StoreSums(task, p, token, tokens, tile.sums);
}

template <typename F>
void Panels(const Int8PanelTask& task) {
  if (task.tokens <= kMaxDirectTokens) {
    const int64_t each = task.panels / kStreams;
    for (int64_t i = 0; i < each; ++i) DirectPanels<F>(task, i, kStreams, each);
    const int64_t done = each * kStreams;
    if (done < task.panels) DirectPanels<F>(task, done, static_cast<int>(task.panels - done), 1);
    return;
  }
  // The rows of x that a tile of tokens takes stay in the cache for all panels.
  for (int64_t token = 0; token < task.tokens; token += kTileTokens) {
    const int64_t left = task.tokens - token;
    const int tokens = static_cast<int>(left < kTileTokens ? left : kTileTokens);
    for (int64_t p = 0; p < task.panels; ++p) Gemm<F>(task, p, token, tokens);
  }
}

}  // namespace
}  // namespace hexad::cpu
