#pragma once

// Measures an engine in this process, without HTTP and without a batcher's choices: plans go to a
// CPU executor as a batcher would make them, two in flight, the next token pending, greedy.
//
// Not thread-safe. Between calls nothing runs: the executor's threads sleep.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/cpu_executor.h"
#include "engine/models/model_file.h"
#include "server/bench/engine_test_spec.h"
#include "server/bench/machine_limits.h"

namespace hexad {

struct EngineBenchOptions {
  int threads = 1;
  bool pin_threads = false;
  Activations activations = Activations::kInt8;
  DType kv_type = DType::kF16;
  int32_t chunk_tokens = 512;  // of a prefill in one step
};

struct EngineSample {
  double seconds = 0;
  double tokens_per_second = 0;  // of all sequences together
  double cpu_seconds = 0;        // of this process meanwhile
};

class EngineBench final {
 public:
  // Packs the weights, for all tests to come.
  static absl::StatusOr<EngineBench> Make(std::shared_ptr<const ModelFile> model,
                                          const EngineBenchOptions& options);

  // Allocates what the test needs and computes its depth, unless the last test had the same.
  absl::Status Prepare(const EngineTestSpec& spec);
  // One repetition of the prepared test.
  absl::StatusOr<EngineSample> Run();

  // What one repetition must read and compute, by the sizes in the file: a step reads all weights
  // but the embedding's other rows, and the keys and values that its queries see; a prefix that
  // sequences share once.
  Work WorkOf(const EngineTestSpec& spec) const;

  const ModelFile& model() const { return *model_; }
  const ModelShape* shape() const { return executor_ == nullptr ? nullptr : &executor_->shape(); }

 private:
  EngineBench(std::shared_ptr<const ModelFile> model, EngineBenchOptions options)
      : model_(std::move(model)), options_(options) {}

  class Steps;
  absl::Status ComputePrefix(int32_t sequence, int32_t tokens, uint32_t first_block);
  TokenId TokenAt(int32_t sequence, int32_t position) const;
  void Open(int32_t sequence, StepPlan& plan) const;

  std::shared_ptr<const ModelFile> model_;
  EngineBenchOptions options_;
  std::shared_ptr<const CpuWeights> weights_;
  std::unique_ptr<Executor> executor_;
  std::optional<EngineTestSpec> prepared_;
  uint64_t next_step_ = 1;
};

}  // namespace hexad
