// Products of F32, F16 and BF16 weights for AVX2, FMA and F16C; like matmul_avx2.cc compiled with
// those flags and free of library headers.
//
// Each output is a sum over chunks of kFloatChain values of k, and each chunk's part a chain of
// FMAs in ascending k. A block of tokens takes one chunk of one panel after another: its x stays in
// the second-level cache, and the weights, which the first tokens leave behind as floats, in the
// first.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_panel.h"
#include "kernels/cpu/avx2_vector.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {
namespace {

constexpr int kBlockTokens = 128;  // 128 KiB of a chunk's x, a quarter of the second-level cache
constexpr int kPassTokens = 6;     // 6 x 2 chains, 2 weights and 1 input fill the 16 registers
constexpr int kGroupPanels = 4;    // that share a block's x, or are streams of one token's weights
constexpr int kFetchDistance = 2048;
constexpr int kFetchBytes = 32;  // that a pass fetches for each k

// A Decoder makes floats of rows 8v..8v+7 at one k; all 16 take kBytes.

struct DecodeF16 {
  static constexpr int kBytes = 32;
  static INLINE __m256 Value(const uint8_t* line, int v) { return LoadHalves(line + v * 16); }
};

struct DecodeBF16 {
  static constexpr int kBytes = 32;
  static INLINE __m256 Value(const uint8_t* line, int v) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(line + v * 16));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
};

struct DecodeF32 {
  static constexpr int kBytes = 64;
  static INLINE __m256 Value(const uint8_t* line, int v) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(line + v * 32));
  }
};

// `count` values of k, of some panels and tokens.
struct Chunk {
  int count;
  bool first;                            // of the product: acc holds nothing yet
  const uint8_t* weights[kGroupPanels];  // of each panel
  float* tile;           // [count, 16]: where a pass that stores leaves the floats of its panel
  const uint8_t* ahead;  // the weights that come next, for passes that fetch
  const float* x;        // of the first token
  float* acc;            // [panels, kBlockTokens, 16], of the first token
};

// What a pass does on the side.
enum class Side {
  kFetchOwn,   // fetch weights further on in its own panels, where it reads them from memory
  kStoreTile,  // leave the floats of its panel behind
  kFetchNext,  // fetch the weights that come next
  kNothing,
};

// sum += a * b. Compilers otherwise take forms that overwrite a or b, and move sums about.
INLINE void MultiplyAdd(__m256 a, __m256 b, __m256& sum) {
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
}

template <int kBytes, _mm_hint kHint>
INLINE void Fetch(const uint8_t* bytes) {
#pragma GCC unroll 4
  for (int line = 0; line < kBytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(bytes + line), kHint);
  }
}

template <typename Decoder, int kTokens, int kPanels>
INLINE void Step(const uint8_t* const (&weights)[kPanels], int byte,
                 const float* const (&x)[kTokens], int64_t k, float* tile,
                 __m256 (&chain)[kPanels][kTokens][2]) {
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    const __m256 w0 = Decoder::Value(weights[p] + byte, 0);
    const __m256 w1 = Decoder::Value(weights[p] + byte, 1);
    if (tile != nullptr) {
      _mm256_store_ps(tile, w0);
      _mm256_store_ps(tile + 8, w1);
    }
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      const __m256 xi = _mm256_broadcast_ss(x[t] + k);
      MultiplyAdd(w0, xi, chain[p][t][0]);
      MultiplyAdd(w1, xi, chain[p][t][1]);
    }
  }
}

template <typename Decoder, int kTokens, int kPanels, Side kSide>
void Pass(const Chunk& chunk) {
  constexpr int kUnroll = 4;
  const uint8_t* weights[kPanels];
  const float* x[kTokens];
  __m256 chain[kPanels][kTokens][2];
#pragma GCC unroll 6
  for (int t = 0; t < kTokens; ++t) {
    x[t] = chunk.x + t * kFloatChain;
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      weights[p] = chunk.weights[p];
      chain[p][t][0] = chain[p][t][1] = _mm256_setzero_ps();
    }
  }
  float* tile = chunk.tile;
  const uint8_t* ahead = chunk.ahead;
  int64_t k = 0;
  for (; k + kUnroll <= chunk.count; k += kUnroll) {
#pragma GCC unroll 4
    for (int i = 0; i < kUnroll; ++i) {
      Step<Decoder, kTokens, kPanels>(weights, i * Decoder::kBytes, x, k + i,
                                      kSide == Side::kStoreTile ? tile + i * kPanelRows : nullptr,
                                      chain);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) weights[p] += kUnroll * Decoder::kBytes;
    if constexpr (kSide == Side::kStoreTile) tile += kUnroll * kPanelRows;
    if constexpr (kSide == Side::kFetchOwn) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        Fetch<kUnroll * Decoder::kBytes, _MM_HINT_T0>(weights[p] + kFetchDistance);
      }
    }
    if constexpr (kSide == Side::kFetchNext) {
      Fetch<kUnroll * kFetchBytes, _MM_HINT_T1>(ahead);
      ahead += kUnroll * kFetchBytes;
    }
  }
  for (; k < chunk.count; ++k) {
    Step<Decoder, kTokens, kPanels>(weights, 0, x, k, kSide == Side::kStoreTile ? tile : nullptr,
                                    chain);
    for (int p = 0; p < kPanels; ++p) weights[p] += Decoder::kBytes;
    if constexpr (kSide == Side::kStoreTile) tile += kPanelRows;
  }
  const __m256 none = _mm256_setzero_ps();
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 6
    for (int t = 0; t < kTokens; ++t) {
      float* sum = chunk.acc + (p * kBlockTokens + t) * kPanelRows;
      const __m256 low = chunk.first ? none : _mm256_load_ps(sum);
      const __m256 high = chunk.first ? none : _mm256_load_ps(sum + 8);
      _mm256_store_ps(sum, _mm256_add_ps(low, chain[p][t][0]));
      _mm256_store_ps(sum + 8, _mm256_add_ps(high, chain[p][t][1]));
    }
  }
}

template <typename Decoder, Side kSide>
void PassOfTokens(int tokens, const Chunk& chunk) {
  switch (tokens) {
    case 1:
      return Pass<Decoder, 1, 1, kSide>(chunk);
    case 2:
      return Pass<Decoder, 2, 1, kSide>(chunk);
    case 3:
      return Pass<Decoder, 3, 1, kSide>(chunk);
    case 4:
      return Pass<Decoder, 4, 1, kSide>(chunk);
    case 5:
      return Pass<Decoder, 5, 1, kSide>(chunk);
    default:
      return Pass<Decoder, 6, 1, kSide>(chunk);
  }
}

// Tokens of the next pass when `left` are left: as few passes as there can be, of about one size,
// because a pass of one or two tokens leaves most of the FMA units idle.
int NextTokens(int left) {
  const int passes = (left + kPassTokens - 1) / kPassTokens;
  return (left + passes - 1) / passes;
}

// One panel: the first pass reads the weights, the later ones their floats; these also fetch the
// weights that come next, which nobody reads while they last.
template <typename Decoder>
void PanelChunk(Chunk chunk, int tokens) {
  alignas(64) float tile[kFloatChain * kPanelRows];
  int pass = NextTokens(tokens);
  if (pass == tokens) return PassOfTokens<Decoder, Side::kFetchOwn>(pass, chunk);
  if constexpr (Decoder::kBytes == DecodeF32::kBytes) {
    PassOfTokens<Decoder, Side::kFetchOwn>(pass, chunk);
  } else {
    chunk.tile = tile;
    PassOfTokens<Decoder, Side::kStoreTile>(pass, chunk);
    chunk.weights[0] = reinterpret_cast<const uint8_t*>(tile);
  }
  const uint8_t* const ahead_end = chunk.ahead + chunk.count * Decoder::kBytes;
  for (int left = tokens - pass; left > 0; left -= pass) {
    chunk.x += pass * kFloatChain;
    chunk.acc += pass * kPanelRows;
    pass = NextTokens(left);
    if (chunk.ahead < ahead_end) {
      PassOfTokens<DecodeF32, Side::kFetchNext>(pass, chunk);
      chunk.ahead += chunk.count * kFetchBytes;
    } else {
      PassOfTokens<DecodeF32, Side::kNothing>(pass, chunk);
    }
  }
}

// Few tokens take several panels side by side, which gives more chains and streams of weights.
template <typename Decoder>
void GroupChunk(const Chunk& chunk, int panels, int tokens) {
  if (tokens == 1 && panels == 4) return Pass<Decoder, 1, 4, Side::kNothing>(chunk);
  Chunk part = chunk;
  for (int p = 0; p < panels;) {
    const bool pair = tokens <= 3 && panels - p >= 2;
    part.acc = chunk.acc + p * kBlockTokens * kPanelRows;
    part.weights[0] = chunk.weights[p];
    part.weights[1] = pair ? chunk.weights[p + 1] : nullptr;
    part.ahead =
        p + 1 < panels ? chunk.weights[p + 1] : chunk.weights[0] + chunk.count * Decoder::kBytes;
    if (!pair) {
      PanelChunk<Decoder>(part, tokens);
    } else if (tokens == 1) {
      Pass<Decoder, 1, 2, Side::kFetchOwn>(part);
    } else if (tokens == 2) {
      Pass<Decoder, 2, 2, Side::kFetchOwn>(part);
    } else {
      Pass<Decoder, 3, 2, Side::kFetchOwn>(part);
    }
    p += pair ? 2 : 1;
  }
}

// Panels first, first + step, ... times tokens token, token + 1, ...
template <typename Decoder>
void Group(const FloatPanelsTask& task, int64_t first, int64_t step, int panels, int64_t token,
           int tokens) {
  alignas(64) float acc[kGroupPanels * kBlockTokens * kPanelRows];
  Chunk chunk{};
  chunk.acc = acc;
  const float* x = task.x + token * kFloatChain;
  for (int64_t k = 0; k < task.in; k += kFloatChain, x += task.tokens * kFloatChain) {
    chunk.count = static_cast<int>(task.in - k < kFloatChain ? task.in - k : kFloatChain);
    chunk.first = k == 0;
    chunk.x = x;
    for (int p = 0; p < panels; ++p) {
      chunk.weights[p] = task.weights + (first + p * step) * task.panel_bytes + k * Decoder::kBytes;
    }
    GroupChunk<Decoder>(chunk, panels, tokens);
  }
  for (int p = 0; p < panels; ++p) {
    const int64_t row = (first + p * step) * kPanelRows;
    const int64_t rows = task.rows - row < kPanelRows ? task.rows - row : kPanelRows;
    for (int t = 0; t < tokens; ++t) {
      const float* sums = acc + (p * kBlockTokens + t) * kPanelRows;
      float* y = task.y + (token + t) * task.y_stride + row;
      if (rows == kPanelRows) {
        _mm256_storeu_ps(y, _mm256_load_ps(sums));
        _mm256_storeu_ps(y + 8, _mm256_load_ps(sums + 8));
      } else {
        for (int64_t i = 0; i < rows; ++i) y[i] = sums[i];
      }
    }
  }
}

template <typename Decoder>
void Panels(const FloatPanelsTask& task) {
  // Few tokens: as many streams of weights as passes take, each through its part of the panels to
  // the end. Many: panels that take turns with a chunk of x.
  const bool many = task.tokens > 6 && task.tokens * task.in > kBlockTokens * kFloatChain;
  const int streams = task.tokens == 1 ? 4 : task.tokens <= 3 ? 2 : 1;
  const int group = many ? kGroupPanels : streams;
  const int64_t groups = task.panels / group;
  for (int64_t token = 0; token < task.tokens; token += kBlockTokens) {
    const int64_t left = task.tokens - token;
    const int tokens = static_cast<int>(left < kBlockTokens ? left : kBlockTokens);
    for (int64_t g = 0; g < groups; ++g) {
      Group<Decoder>(task, many ? g * group : g, many ? 1 : groups, group, token, tokens);
    }
    const int rest = static_cast<int>(task.panels - groups * group);
    if (rest > 0) Group<Decoder>(task, groups * group, 1, rest, token, tokens);
  }
}

}  // namespace

void Avx2FloatPanels(const FloatPanelsTask& task) {
  switch (task.kind) {
    case WeightKind::kF16:
      return Panels<DecodeF16>(task);
    case WeightKind::kBF16:
      return Panels<DecodeBF16>(task);
    default:
      return Panels<DecodeF32>(task);
  }
}

}  // namespace hexad::cpu
