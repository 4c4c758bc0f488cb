#include "server/serving/load.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/cpu_executor.h"
#include "engine/emulated_executor.h"
#include "engine/models/kv_storage.h"
#include "engine/models/shape.h"
#include "engine/reference_executor.h"
#include "kvcache/core/budget.h"
#include "server/serving/fallback_model.h"

namespace hexad {
namespace {

absl::Status Naming(const std::string& what, const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrFormat("%s %s: %s", what, name, std::string(status.message())));
}

absl::StatusOr<std::shared_ptr<const ModelFile>> OpenSource(const std::string& source) {
  if (!IsFallbackModel(source)) return OpenModelFile(source);
  auto gguf = GgufFile::Parse(FallbackModelBytes(), kFallbackModelName);
  if (!gguf.ok()) return gguf.status();
  return MakeModelFile(*std::move(gguf));
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadModel(const ModelConfig& config) {
  auto file = OpenSource(config.source);
  if (!file.ok()) return file.status();

  auto model = std::make_unique<LoadedModel>();
  model->name = config.name;
  model->created_unix = absl::ToUnixSeconds(absl::Now());
  model->model_digest = (*file)->digest;
  const int32_t trained = (*file)->spec.max_context_tokens;
  model->max_context_tokens = trained;
  if (config.context.has_value()) {
    if (*config.context > trained) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "context is %d, but the model was made for at most %d tokens", *config.context, trained));
    }
    model->max_context_tokens = static_cast<int32_t>(*config.context);
  }
  auto tokenizer = Tokenizer::FromGguf(*(*file)->gguf);
  if (!tokenizer.ok()) return tokenizer.status();
  model->tokenizer = *std::move(tokenizer);
  if (!model->tokenizer->chat_template().empty()) {
    auto chat_template = ChatTemplate::Parse(model->tokenizer->chat_template());
    if (!chat_template.ok()) return chat_template.status();
    model->chat_template = *std::move(chat_template);
  }
  model->file = *std::move(file);
  return model;
}

int32_t ThreadsOf(const DeviceConfig& device) {
  if (device.threads.has_value()) return static_cast<int32_t>(*device.threads);
  return static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
}

KvBudget BudgetOf(const Config& config, int64_t bytes) {
  return {.bytes = bytes, .max_running = static_cast<int32_t>(config.batch.max_running)};
}

absl::StatusOr<std::vector<uint32_t>> BlocksOf(const ModelShape& shape, const KvBudget& budget) {
  std::vector<uint32_t> blocks = PartitionKvBudget(shape.kv, budget);
  if (blocks.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "kvcache.host leaves it %d bytes, which is less than one block a group", budget.bytes));
  }
  return blocks;
}

DType KvTypeOf(const Config& config) {
  switch (config.kvcache.type) {
    case KvType::kF16:
      return DType::kF16;
    case KvType::kF32:
      return DType::kF32;
    case KvType::kQ8_0:
      return DType::kQ8_0;
  }
  return DType::kF16;
}

absl::StatusOr<std::unique_ptr<Executor>> MakeEmulated(const Config& config, int64_t kv_bytes,
                                                       const LoadedModel& model) {
  EmulatedOptions options;
  const DType kv_type = KvTypeOf(config);
  const absl::Status kv_type_fits = CheckKvType(model.file->spec, kv_type);
  if (!kv_type_fits.ok()) return kv_type_fits;
  options.shape = MakeModelShape(*model.file, static_cast<int32_t>(config.kvcache.block_tokens),
                                 kv_type, "emulated");
  auto blocks = BlocksOf(options.shape, BudgetOf(config, kv_bytes));
  if (!blocks.ok()) return blocks.status();
  options.pool_blocks = *std::move(blocks);
  options.end_token = options.shape.vocab_size;
  const std::vector<TokenId>& ends = model.tokenizer->end_of_generation();
  if (!ends.empty()) {
    options.end_of_sequence = ends.front();
    options.end_probability = 0.005;  // answers of about 200 tokens
  }
  return MakeEmulatedExecutor(std::move(options));
}

absl::StatusOr<std::unique_ptr<Executor>> MakeExecutor(const Config& config,
                                                       const WorkerConfig& worker,
                                                       const LoadedModel& model) {
  const int64_t kv_bytes = worker.kv_bytes.value_or(config.kvcache.host_bytes /
                                                    static_cast<int64_t>(config.workers.size()));
  const auto block_tokens = static_cast<int32_t>(config.kvcache.block_tokens);
  switch (worker.device.kind) {
    case DeviceKind::kCpu: {
      CpuExecutorOptions options;
      options.threads = ThreadsOf(worker.device);
      options.block_tokens = block_tokens;
      options.kv_type = KvTypeOf(config);
      options.activations = worker.device.activations == ActivationKind::kInt8 ? Activations::kInt8
                                                                               : Activations::kF32;
      options.kv_bytes = kv_bytes;
      options.max_running = static_cast<int32_t>(config.batch.max_running);
      options.max_context_tokens = model.max_context_tokens;
      return MakeCpuExecutor(model.file, options);
    }
    case DeviceKind::kReference: {
      if (config.kvcache.type == KvType::kQ8_0) {
        return absl::InvalidArgumentError(
            "kvcache.type is q8_0, but the reference device keeps f32: use f32, or another device");
      }
      ReferenceExecutorOptions options;
      options.block_tokens = block_tokens;
      const ModelShape shape = MakeModelShape(*model.file, block_tokens, DType::kF32, "reference");
      auto blocks = BlocksOf(shape, BudgetOf(config, kv_bytes));
      if (!blocks.ok()) return blocks.status();
      options.pool_blocks = *std::move(blocks);
      return MakeReferenceExecutor(model.file, options);
    }
    case DeviceKind::kEmulated:
      return MakeEmulated(config, kv_bytes, model);
  }
  return absl::InternalError("unknown device kind");
}

}  // namespace

absl::StatusOr<ServingParts> LoadServing(const Config& config, Logger& log) {
  ServingParts parts;
  for (const ModelConfig& model_config : config.models) {
    const absl::Time start = absl::Now();
    auto model = LoadModel(model_config);
    if (!model.ok()) return Naming("model", model_config.name, model.status());
    log.Info("model opened", {{"model", model_config.name},
                              {"context", (*model)->max_context_tokens},
                              {"seconds", absl::ToDoubleSeconds(absl::Now() - start)}});
    parts.models.push_back(*std::move(model));
  }
  for (const WorkerConfig& worker : config.workers) {
    const absl::Time start = absl::Now();
    const auto model = std::find_if(parts.models.begin(), parts.models.end(),
                                    [&](const auto& m) { return m->name == worker.model; });
    if (model == parts.models.end()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "worker %s serves the model '%s', which is not in models", worker.name, worker.model));
    }
    auto executor = MakeExecutor(config, worker, **model);
    if (!executor.ok()) return Naming("worker", worker.name, executor.status());
    log.Info("worker ready", {{"worker", worker.name},
                              {"model", worker.model},
                              {"numerics", (*executor)->shape().numerics_id},
                              {"seconds", absl::ToDoubleSeconds(absl::Now() - start)}});
    BatcherConfig batcher;
    batcher.step_target = config.batch.step_target;
    batcher.max_running = static_cast<int32_t>(config.batch.max_running);
    batcher.max_waiting = static_cast<int32_t>(config.batch.max_waiting);
    batcher.max_context_tokens = (*model)->max_context_tokens;
    batcher.end_of_sequence = (*model)->tokenizer->end_of_generation();
    parts.replicas.push_back({.name = worker.name,
                              .model = worker.model,
                              .executor = *std::move(executor),
                              .batcher = std::move(batcher)});
  }
  return parts;
}

}  // namespace hexad
