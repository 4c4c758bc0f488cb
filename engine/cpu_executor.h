#pragma once

// The executor of CPU workers: packed quantised weights, paged KV in F16, F32 or Q8_0, a thread of
// its own that computes along with a team.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/executor.h"
#include "engine/models/model_file.h"
#include "kernels/types.h"

namespace hexad {

class CpuWeights;

struct CpuExecutorOptions {
  int threads = 1;              // 1 to 1024
  bool pin_threads = false;     // tie the team's threads to CPUs
  int32_t block_tokens = 16;    // a multiple of 16, up to 1024
  DType kv_type = DType::kF16;  // or kF32; or kQ8_0, for heads of a multiple of 32 dimensions
  // What multiplies quantised weights. kF32 is exact and about half as fast; see kernels/matmul.h
  // and docs/accuracy.md.
  Activations activations = Activations::kInt8;
  // Memory of the KV pools, shared out among the groups by PartitionKvBudget.
  int64_t kv_bytes = int64_t{1} << 30;
  int32_t max_running = 64;           // for that partition: sequences at a time,
  int32_t max_chunk_tokens = 512;     // and tokens of one of them in one step
  std::vector<uint32_t> pool_blocks;  // blocks of each group instead of kv_bytes, when not empty
  int32_t max_context_tokens = 0;     // less than the model's; 0: the model's
  bool record_digests = false;        // fill RowResult::logits_digest
};

// Errors: InvalidArgument for options that do not fit the model, ResourceExhausted for memory.
absl::StatusOr<std::unique_ptr<Executor>> MakeCpuExecutor(std::shared_ptr<const ModelFile> model,
                                                          const CpuExecutorOptions& options);

// The same with weights that executors of one process share; see cpu_transformer.h. They must have
// been packed for the options' activations, else InvalidArgument.
absl::StatusOr<std::unique_ptr<Executor>> MakeCpuExecutor(std::shared_ptr<const ModelFile> model,
                                                          std::shared_ptr<const CpuWeights> weights,
                                                          const CpuExecutorOptions& options);

}  // namespace hexad
