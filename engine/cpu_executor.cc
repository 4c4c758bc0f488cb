#include "engine/cpu_executor.h"

#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/model_executor.h"
#include "engine/models/cpu_transformer.h"
#include "engine/models/kv_storage.h"
#include "engine/models/shape.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kvcache/core/budget.h"

namespace hexad {
namespace {

constexpr int kMostThreads = 1024;
constexpr int32_t kMostBlockTokens = 1024;

absl::Status Check(const ModelFile& model, const CpuExecutorOptions& options) {
  if (options.threads < 1 || options.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d threads: use 1 to %d", options.threads, kMostThreads));
  }
  if (options.block_tokens < kUnitTokens || options.block_tokens > kMostBlockTokens ||
      options.block_tokens % kUnitTokens != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("blocks of %d tokens: use a multiple of %d up to %d", options.block_tokens,
                        kUnitTokens, kMostBlockTokens));
  }
  const absl::Status kv_type_fits = CheckKvType(model.spec, options.kv_type);
  if (!kv_type_fits.ok()) return kv_type_fits;
  if (options.max_context_tokens < 0 ||
      options.max_context_tokens > model.spec.max_context_tokens) {
    return absl::InvalidArgumentError(absl::StrFormat("a context of %d tokens: the model has %d",
                                                      options.max_context_tokens,
                                                      model.spec.max_context_tokens));
  }
  return absl::OkStatus();
}

// Everything that decides the bits of logits, apart from the model itself.
std::string NumericsId(const CpuExecutorOptions& options) {
  return absl::StrFormat("cpu/%s/%s/kv-%s/segment-%d", KernelSetName(options.activations),
                         AttentionKernelsName(), Info(options.kv_type).name, kAttentionSegment);
}

absl::StatusOr<std::unique_ptr<Executor>> Build(std::shared_ptr<const ModelFile> model,
                                                std::shared_ptr<const CpuWeights> weights,
                                                const CpuExecutorOptions& options) {
  ModelExecutor::Parts parts;
  parts.shape = MakeModelShape(*model, options.block_tokens, options.kv_type, NumericsId(options));
  if (options.max_context_tokens > 0) parts.shape.max_context_tokens = options.max_context_tokens;
  parts.pool_blocks = options.pool_blocks;
  if (parts.pool_blocks.empty()) {
    KvBudget budget;
    budget.bytes = options.kv_bytes;
    budget.max_running = options.max_running;
    budget.max_chunk_tokens = options.max_chunk_tokens;
    parts.pool_blocks = PartitionKvBudget(parts.shape.kv, budget);
    if (parts.pool_blocks.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%d bytes for KV do not hold one block of %d tokens; give more",
                          options.kv_bytes, options.block_tokens));
    }
  }
  parts.record_digests = options.record_digests;
  parts.team = std::make_unique<ThreadTeam>(options.threads, options.pin_threads);
  if (weights == nullptr) weights = PackCpuWeights(*model, *parts.team, options.activations);
  if (ActivationsOf(*weights) != options.activations) {
    return absl::InvalidArgumentError("the weights are packed for other activations");
  }
  const KvStorageOptions kv{options.kv_type, options.block_tokens, parts.pool_blocks};
  absl::StatusOr<std::unique_ptr<Model>> transformer =
      MakeCpuTransformer(std::move(model), std::move(weights), kv, *parts.team);
  if (!transformer.ok()) return transformer.status();
  parts.model = *std::move(transformer);
  return std::unique_ptr<Executor>(std::make_unique<ModelExecutor>(std::move(parts)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> MakeCpuExecutor(std::shared_ptr<const ModelFile> model,
                                                          std::shared_ptr<const CpuWeights> weights,
                                                          const CpuExecutorOptions& options) {
  const absl::Status checked = Check(*model, options);
  if (!checked.ok()) return checked;
  try {
    return Build(std::move(model), std::move(weights), options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for the model's weights");
  }
}

absl::StatusOr<std::unique_ptr<Executor>> MakeCpuExecutor(std::shared_ptr<const ModelFile> model,
                                                          const CpuExecutorOptions& options) {
  return MakeCpuExecutor(std::move(model), nullptr, options);
}

}  // namespace hexad
