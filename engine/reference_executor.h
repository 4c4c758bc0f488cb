#pragma once

// The executor that others are compared with: fp32 weights, KV and arithmetic in plain loops on one
// thread. Slow; for tests and for checking a doubtful answer.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/executor.h"
#include "engine/models/model_file.h"

namespace hexad {

struct ReferenceExecutorOptions {
  int32_t block_tokens = 16;          // a multiple of 16, up to 1024
  std::vector<uint32_t> pool_blocks;  // of each group
  bool record_digests = false;
};

absl::StatusOr<std::unique_ptr<Executor>> MakeReferenceExecutor(
    std::shared_ptr<const ModelFile> model, const ReferenceExecutorOptions& options);

}  // namespace hexad
