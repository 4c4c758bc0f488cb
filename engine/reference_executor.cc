#include "engine/reference_executor.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/model_executor.h"
#include "engine/models/reference_transformer.h"
#include "engine/models/shape.h"
#include "kvcache/core/types.h"

namespace hexad {

absl::StatusOr<std::unique_ptr<Executor>> MakeReferenceExecutor(
    std::shared_ptr<const ModelFile> model, const ReferenceExecutorOptions& options) {
  if (options.block_tokens < kUnitTokens || options.block_tokens > 1024 ||
      options.block_tokens % kUnitTokens != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "blocks of %d tokens: use a multiple of %d up to 1024", options.block_tokens, kUnitTokens));
  }
  ModelExecutor::Parts parts;
  parts.shape = MakeModelShape(*model, options.block_tokens, DType::kF32, "reference/f64/kv-F32");
  parts.pool_blocks = options.pool_blocks;
  parts.record_digests = options.record_digests;
  parts.team = std::make_unique<ThreadTeam>(1);
  const KvStorageOptions kv{DType::kF32, options.block_tokens, options.pool_blocks};
  absl::StatusOr<std::unique_ptr<Model>> transformer =
      MakeReferenceTransformer(std::move(model), kv);
  if (!transformer.ok()) return transformer.status();
  parts.model = *std::move(transformer);
  return std::unique_ptr<Executor>(std::make_unique<ModelExecutor>(std::move(parts)));
}

}  // namespace hexad
