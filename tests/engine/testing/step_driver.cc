#include "tests/engine/testing/step_driver.h"

#include <algorithm>
#include <future>

#include "kvcache/core/check.h"

namespace hexad {

absl::StatusOr<StepResult> RunStep(Executor& executor, StepPlan plan) {
  std::promise<absl::StatusOr<StepResult>> promise;
  std::future<absl::StatusOr<StepResult>> future = promise.get_future();
  executor.Submit(std::move(plan),
                  [&](absl::StatusOr<StepResult> result) { promise.set_value(std::move(result)); });
  return future.get();
}

StepDriver::StepDriver(Executor& executor)
    : executor_(executor), next_block_(executor.pool_blocks().size(), 0) {}

size_t StepDriver::Add(std::vector<TokenId> prompt, SamplingParams sampling) {
  Sequence sequence;
  sequence.prompt = std::move(prompt);
  sequence.sampling = std::move(sampling);
  sequence.tables.resize(next_block_.size());
  sequence.sent.assign(next_block_.size(), 0);
  sequences_.push_back(std::move(sequence));
  return sequences_.size() - 1;
}

void StepDriver::Share(size_t sequence, size_t other, int32_t num_tokens) {
  Sequence& to = sequences_[sequence];
  const Sequence& from = sequences_[other];
  HEXAD_CHECK(from.computed >= num_tokens && to.computed == 0, "the prefix is computed, once");
  const auto blocks = static_cast<size_t>(num_tokens / executor_.shape().kv.block_tokens);
  for (size_t g = 0; g < to.tables.size(); ++g) {
    to.tables[g].assign(from.tables[g].begin(),
                        from.tables[g].begin() + static_cast<ptrdiff_t>(blocks));
  }
  to.computed = num_tokens;
}

void StepDriver::Preempt(size_t sequence) {
  Sequence& preempted = sequences_[sequence];
  if (preempted.open) closed_.push_back(preempted.slot);
  preempted.open = false;
  preempted.computed = 0;
  for (auto& table : preempted.tables) table.clear();
  preempted.sent.assign(preempted.sent.size(), 0);
}

BlockId StepDriver::NewBlock(size_t group) {
  HEXAD_CHECK(next_block_[group] < executor_.pool_blocks()[group], "the pool is large enough");
  return BlockId{next_block_[group]++};
}

void StepDriver::Plan(Sequence& sequence, int32_t most_tokens, StepPlan& plan) {
  if (!sequence.open) {
    sequence.open = true;
    sequence.slot = SlotId{next_slot_++};
    SlotOpen open;
    open.slot = sequence.slot;
    open.request = RequestId{static_cast<uint64_t>(sequence.slot) + 1};
    open.sampling = sequence.sampling;
    open.prompt = sequence.prompt;
    open.output = sequence.output;
    plan.opened.push_back(std::move(open));
  }
  const auto known = static_cast<int32_t>(sequence.prompt.size() + sequence.output.size());
  Row row;
  row.slot = sequence.slot;
  row.position = sequence.computed;
  row.num_tokens = std::min(most_tokens, known - sequence.computed);
  row.first_token = static_cast<uint32_t>(plan.tokens.size());
  row.sample = sequence.computed + row.num_tokens == known;
  for (int32_t i = sequence.computed; i < sequence.computed + row.num_tokens; ++i) {
    const auto at = static_cast<size_t>(i);
    plan.tokens.push_back(at < sequence.prompt.size()
                              ? sequence.prompt[at]
                              : sequence.output[at - sequence.prompt.size()]);
  }
  sequence.computed += row.num_tokens;
  const int32_t block_tokens = executor_.shape().kv.block_tokens;
  const auto needed = static_cast<size_t>((sequence.computed + block_tokens - 1) / block_tokens);
  for (size_t g = 0; g < sequence.tables.size(); ++g) {
    std::vector<BlockId>& table = sequence.tables[g];
    while (table.size() < needed) table.push_back(NewBlock(g));
    if (sequence.sent[g] == table.size()) continue;
    BlockAppend append{sequence.slot, static_cast<uint32_t>(g), sequence.sent[g],
                       static_cast<uint32_t>(plan.blocks.size()),
                       static_cast<uint32_t>(table.size()) - sequence.sent[g]};
    plan.blocks.insert(plan.blocks.end(), table.begin() + sequence.sent[g], table.end());
    sequence.sent[g] = static_cast<uint32_t>(table.size());
    plan.appends.push_back(append);
  }
  plan.rows.push_back(row);
}

absl::Status StepDriver::Step(const std::vector<std::pair<size_t, int32_t>>& work) {
  StepPlan plan;
  plan.step = StepId{next_step_++};
  plan.closed = std::exchange(closed_, {});
  for (const auto& [index, tokens] : work) Plan(sequences_[index], tokens, plan);
  absl::StatusOr<StepResult> result = RunStep(executor_, std::move(plan));
  if (!result.ok()) return result.status();
  for (const RowResult& row : result->rows) {
    for (Sequence& sequence : sequences_) {
      if (!sequence.open || sequence.slot != row.slot) continue;
      sequence.digests[sequence.output.size()] = row.logits_digest;
      sequence.output.push_back(row.tokens.front().token);
      sequence.sampled.push_back(row.tokens.front());
    }
  }
  return absl::OkStatus();
}

absl::Status StepDriver::Generate(size_t sequence, size_t count, int32_t chunk) {
  while (sequences_[sequence].output.size() < count) {
    const absl::Status status = Step({{sequence, chunk}});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hexad
