#pragma once

// What `hexad bench kernels` measures: the ops of kernels/ at the sizes that they have in known
// models. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/types.h"
#include "server/bench/machine_limits.h"

namespace hexad {

struct KernelModel {
  const char* name;
  int32_t hidden;
  int32_t ffn;
  int32_t heads;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t vocabulary;
  bool gelu;  // the gate, else SiLU
};
std::span<const KernelModel> KernelModels();

enum class KernelOp : uint8_t {
  kQkv,              // queries, keys and values, as one matrix
  kAttentionOutput,  //
  kFfnGated,         // gate and up, and the gate's function
  kFfnDown,          //
  kLogits,           // the vocabulary, greatest logit only
  kAttentionDecode,  // one query of each sequence
  kAttentionPrefill,
  kAttentionCascade,  // one query of each sequence, 2,048 positions shared by all
  kNorm,              // residual, norm, and what the next product needs of it
  kRopeStore,         // RoPE of queries and keys, and into the cache
  kQuantize,          // rows as the next product needs them
  kTeam,              // an empty job handed to the threads
};
const char* KernelOpName(KernelOp op);
const char* KernelOpAbout(KernelOp op);
inline constexpr int kKernelOps = static_cast<int>(KernelOp::kTeam) + 1;

struct KernelCase {
  KernelOp op{};
  const KernelModel* model = nullptr;
  DType format{};  // of the weights or of keys and values; F32 where there are none
  Activations activations{};
  int32_t tokens = 1;  // rows; of attention-decode and -cascade the sequences
};

// Positions before the queries of attention-decode; shared ones of -cascade; own ones of that.
inline constexpr int32_t kDecodeDepth = 4096;
inline constexpr int32_t kSharedDepth = 2048;
inline constexpr int32_t kOwnDepth = 64;

// Rows and columns of a product's weights, both matrices of kFfnGated together. REQUIRES: a
// product.
struct KernelShape {
  int64_t out = 0;
  int64_t in = 0;
};
bool IsProduct(KernelOp op);
KernelShape ProductShape(KernelOp op, const KernelModel& model);

// Comma-separated lists as typed; "all" is everything there is.
struct KernelFilter {
  std::string ops = "all";
  std::string models = "qwen05b";
  std::string formats = "Q4_0,Q8_0,Q4_K,Q6_K,F16";
  std::string activations = "int8";
  std::string kv = "F16,Q8_0";
  std::string tokens = "1,4,8,32,512";
};
// By model, op, format, activations and then tokens. A format whose blocks do not divide a matrix's
// input is left out for it.
absl::StatusOr<std::vector<KernelCase>> SelectKernels(const KernelFilter& filter);

// What a case must at least read and compute; of ops that work in the caches the bytes touched.
Work WorkOf(const KernelCase& one);
// Those ops: their share of the memory's limit says nothing.
bool WorksInCaches(KernelOp op);

}  // namespace hexad
