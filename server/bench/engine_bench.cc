#include "server/bench/engine_bench.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/models/cpu_transformer.h"
#include "kernels/thread_team.h"

namespace hexad {
namespace {

constexpr int32_t kBlockTokens = 16;
constexpr int kStepsInFlight = 2;

double Now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

uint32_t BlocksOf(int32_t tokens) {
  return static_cast<uint32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

// Where the blocks of a test lie in each group's pool: the prefixes first, then what a repetition
// fills.
uint32_t PrefixBlocks(const EngineTestSpec& spec) { return BlocksOf(spec.depth); }
uint32_t Prefixes(const EngineTestSpec& spec) {
  return spec.shared ? 1 : static_cast<uint32_t>(spec.batch);
}
uint32_t FirstPrefixBlock(const EngineTestSpec& spec, int32_t sequence) {
  return spec.shared ? 0 : PrefixBlocks(spec) * static_cast<uint32_t>(sequence);
}
uint32_t FirstOwnBlock(const EngineTestSpec& spec, int32_t sequence) {
  return PrefixBlocks(spec) * Prefixes(spec) +
         BlocksOf(spec.tokens) * static_cast<uint32_t>(sequence);
}
uint32_t PoolBlocks(const EngineTestSpec& spec) { return FirstOwnBlock(spec, spec.batch); }

void Append(SlotId slot, size_t group, uint32_t first_index, uint32_t first_block, uint32_t blocks,
            StepPlan& plan) {
  if (blocks == 0) return;
  plan.appends.push_back({slot, static_cast<uint32_t>(group), first_index,
                          static_cast<uint32_t>(plan.blocks.size()), blocks});
  for (uint32_t i = 0; i < blocks; ++i) plan.blocks.push_back(BlockId{first_block + i});
}

double Values(const GgufTensor* tensor) {
  if (tensor == nullptr) return 0;
  double values = 1;
  for (const int64_t dim : tensor->dims) values *= static_cast<double>(dim);
  return values;
}

}  // namespace

// Submits plans, a bounded number of them at a time, and keeps the first error.
class EngineBench::Steps {
 public:
  explicit Steps(Executor& executor) : executor_(executor) {}
  ~Steps() { Await(0); }

  void Submit(StepPlan plan) {
    Await(kStepsInFlight - 1);
    {
      const std::lock_guard lock(mutex_);
      ++in_flight_;
    }
    executor_.Submit(std::move(plan), [this](const absl::StatusOr<StepResult>& result) {
      const std::lock_guard lock(mutex_);
      if (status_.ok()) status_ = result.status();
      --in_flight_;
      changed_.notify_one();
    });
  }

  absl::Status Finish() {
    Await(0);
    return status_;
  }

 private:
  void Await(int in_flight) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_flight_ <= in_flight; });
  }

  Executor& executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int in_flight_ = 0;
  absl::Status status_;
};

absl::StatusOr<EngineBench> EngineBench::Make(std::shared_ptr<const ModelFile> model,
                                              const EngineBenchOptions& options) {
  if (options.threads < 1 || options.threads > 1024 || options.chunk_tokens < 1) {
    return absl::InvalidArgumentError("the engine takes 1 to 1024 threads and chunks from 1 token");
  }
  EngineBench bench(std::move(model), options);
  ThreadTeam team(options.threads, options.pin_threads);
  bench.weights_ = PackCpuWeights(*bench.model_, team, options.activations);
  return bench;
}

TokenId EngineBench::TokenAt(int32_t sequence, int32_t position) const {
  const int64_t mixed = int64_t{position} * 7919 + int64_t{sequence} * 104729 + 11;
  return TokenId{static_cast<int32_t>(mixed % model_->spec.vocab_size)};
}

void EngineBench::Open(int32_t sequence, StepPlan& plan) const {
  SlotOpen open;
  open.slot = SlotId{sequence};
  open.request = RequestId{static_cast<uint64_t>(sequence) + 1};
  open.sampling.temperature = 0;
  plan.closed.push_back(open.slot);
  plan.opened.push_back(std::move(open));
}

absl::Status EngineBench::ComputePrefix(int32_t sequence, int32_t tokens, uint32_t first_block) {
  Steps steps(*executor_);
  for (int32_t at = 0; at < tokens;) {
    StepPlan plan;
    plan.step = StepId{next_step_++};
    const int32_t count = std::min(options_.chunk_tokens, tokens - at);
    if (at == 0) {
      Open(sequence, plan);
      plan.closed.clear();
      for (size_t group = 0; group < model_->spec.groups.size(); ++group) {
        Append(SlotId{sequence}, group, 0, first_block, BlocksOf(tokens), plan);
      }
    }
    Row row;
    row.slot = SlotId{sequence};
    row.position = at;
    row.num_tokens = count;
    plan.rows.push_back(row);
    for (int32_t i = 0; i < count; ++i) plan.tokens.push_back(TokenAt(sequence, at + i));
    steps.Submit(std::move(plan));
    at += count;
  }
  return steps.Finish();
}

absl::Status EngineBench::Prepare(const EngineTestSpec& spec) {
  if (prepared_ == spec) return absl::OkStatus();
  prepared_.reset();
  if (spec.depth + spec.tokens > model_->spec.max_context_tokens) {
    return absl::InvalidArgumentError(
        absl::StrFormat("depth and tokens are %d together: the model's context holds %d",
                        spec.depth + spec.tokens, model_->spec.max_context_tokens));
  }
  executor_.reset();  // before the next one takes as much memory
  CpuExecutorOptions options;
  options.threads = options_.threads;
  options.pin_threads = options_.pin_threads;
  options.activations = options_.activations;
  options.kv_type = options_.kv_type;
  options.block_tokens = kBlockTokens;
  options.pool_blocks.assign(model_->spec.groups.size(), PoolBlocks(spec));
  absl::StatusOr<std::unique_ptr<Executor>> executor = MakeCpuExecutor(model_, weights_, options);
  if (!executor.ok()) return executor.status();
  executor_ = *std::move(executor);
  next_step_ = 1;
  for (uint32_t i = 0; spec.depth > 0 && i < Prefixes(spec); ++i) {
    const auto sequence = static_cast<int32_t>(i);
    const absl::Status status =
        ComputePrefix(sequence, spec.depth, FirstPrefixBlock(spec, sequence));
    if (!status.ok()) return status;
  }
  // Leaves every slot of the test open, as each repetition finds and leaves them.
  StepPlan plan;
  plan.step = StepId{next_step_++};
  for (int32_t sequence = 0; sequence < spec.batch; ++sequence) {
    Open(sequence, plan);
    const bool open = spec.depth > 0 && sequence < static_cast<int32_t>(Prefixes(spec));
    if (!open) plan.closed.pop_back();
  }
  Steps steps(*executor_);
  steps.Submit(std::move(plan));
  const absl::Status status = steps.Finish();
  if (status.ok()) prepared_ = spec;
  return status;
}

absl::StatusOr<EngineSample> EngineBench::Run() {
  if (!prepared_) return absl::FailedPreconditionError("no test is prepared");
  const EngineTestSpec& spec = *prepared_;
  const bool prefill = spec.kind == EngineTestSpec::Kind::kPrefill;
  const int32_t step_tokens = prefill ? std::min(options_.chunk_tokens, spec.tokens) : 1;
  Steps steps(*executor_);
  const double start = Now();
  const double cpu_start = CpuSeconds();
  for (int32_t at = 0; at < spec.tokens;) {
    StepPlan plan;
    plan.step = StepId{next_step_++};
    const int32_t count = std::min(step_tokens, spec.tokens - at);
    for (int32_t sequence = 0; sequence < spec.batch; ++sequence) {
      if (at == 0) Open(sequence, plan);
      const SlotId slot{sequence};
      // A block is appended by the step that first writes to it.
      const uint32_t filled = BlocksOf(at);
      const uint32_t needed = BlocksOf(at + count) - filled;
      for (size_t group = 0; group < model_->spec.groups.size(); ++group) {
        if (at == 0) {
          Append(slot, group, 0, FirstPrefixBlock(spec, sequence), PrefixBlocks(spec), plan);
        }
        Append(slot, group, PrefixBlocks(spec) + filled, FirstOwnBlock(spec, sequence) + filled,
               needed, plan);
      }
      Row row;
      row.slot = slot;
      row.position = spec.depth + at;
      row.num_tokens = count;
      row.first_token = static_cast<uint32_t>(plan.tokens.size());
      row.sample = !prefill || at + count == spec.tokens;
      plan.rows.push_back(row);
      for (int32_t i = 0; i < count; ++i) {
        const bool known = prefill || at == 0;
        plan.tokens.push_back(known ? TokenAt(sequence, spec.depth + at + i) : TokenId::kPending);
      }
    }
    steps.Submit(std::move(plan));
    at += count;
  }
  const absl::Status status = steps.Finish();
  if (!status.ok()) return status;
  EngineSample sample;
  sample.seconds = Now() - start;
  sample.cpu_seconds = CpuSeconds() - cpu_start;
  sample.tokens_per_second = static_cast<double>(spec.tokens) * spec.batch / sample.seconds;
  return sample;
}

Work EngineBench::WorkOf(const EngineTestSpec& spec) const {
  const bool prefill = spec.kind == EngineTestSpec::Kind::kPrefill;
  const TransformerSpec& shape = model_->spec;
  const double steps =
      prefill ? (spec.tokens + options_.chunk_tokens - 1) / options_.chunk_tokens : spec.tokens;
  const double tokens = static_cast<double>(spec.tokens) * spec.batch;
  Work work;
  const auto add = [&](const GgufTensor* tensor, double rows) {
    if (tensor == nullptr) return;
    Work one;
    AddProduct(tensor->type, options_.activations, Values(tensor), rows, one);
    work.bytes += one.bytes * (prefill && rows < tokens ? 1 : steps);
    work.fp32_ops += one.fp32_ops;
    work.int8_ops += one.int8_ops;
    work.int4_ops += one.int4_ops;
  };
  for (const LayerTensors& layer : model_->tensors.layers) {
    for (const GgufTensor* tensor : {layer.query, layer.key, layer.value, layer.attention_output,
                                     layer.ffn_gate, layer.ffn_up, layer.ffn_down}) {
      add(tensor, tokens);
    }
  }
  add(model_->tensors.head, prefill ? 1 : tokens);

  const double kv_bytes =
      2.0 *
      static_cast<double>(RowBytes(options_.kv_type, int64_t{shape.num_kv_heads} * shape.head_dim));
  const double score_ops = 4.0 * shape.num_heads * shape.head_dim;
  for (const AttentionGroup& group : shape.groups) {
    const auto layers = static_cast<double>(group.layers.size());
    const auto visible = [&](double keys) {
      return group.window > 0 ? std::min(keys, static_cast<double>(group.window)) : keys;
    };
    for (int32_t at = 0; at < spec.tokens; ++at) {
      const double seen = visible(spec.depth + at + 1.0);
      work.fp32_ops += layers * score_ops * seen * spec.batch;
      if (prefill) continue;
      // The new positions are each sequence's own.
      const double own = std::min(seen, at + 1.0);
      const double read = own * spec.batch + (seen - own) * (spec.shared ? 1 : spec.batch);
      work.bytes += layers * kv_bytes * read;
    }
    if (prefill) work.bytes += layers * kv_bytes * visible(spec.depth);
  }
  return work;
}

}  // namespace hexad
