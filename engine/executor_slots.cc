#include "engine/executor_slots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

constexpr uint32_t kHole = static_cast<uint32_t>(BlockId::kNone);

int32_t Number(SlotId slot) { return static_cast<int32_t>(slot); }

absl::Status NoSlot(SlotId slot, std::string_view doing) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s slot %d: it is not open", doing, Number(slot)));
}

}  // namespace

ExecutorSlots::ExecutorSlots(const ModelShape& shape, std::vector<uint32_t> pool_blocks)
    : shape_(shape),
      pool_blocks_(std::move(pool_blocks)),
      most_table_entries_(static_cast<uint32_t>(
          (shape.max_context_tokens + shape.kv.block_tokens - 1) / shape.kv.block_tokens)) {
  for (const uint32_t blocks : pool_blocks_) written_at_.emplace_back(blocks, 0);
}

absl::Status ExecutorSlots::Open(const SlotOpen& open) {
  if (slots_.contains(open.slot)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("opening slot %d: it is open", Number(open.slot)));
  }
  ExecutorSlot slot;
  slot.request = open.request;
  slot.sampling = open.sampling;
  slot.min_new_tokens = open.min_new_tokens;
  slot.masked_until_min = open.masked_until_min;
  slot.history = TokenHistory(open.sampling, open.prompt, open.output);
  slot.tables.resize(pool_blocks_.size());
  slot.first_usable.assign(pool_blocks_.size(), 0);
  slots_.emplace(open.slot, std::move(slot));
  return absl::OkStatus();
}

absl::Status ExecutorSlots::Append(const StepPlan& plan, const BlockAppend& append) {
  const auto found = slots_.find(append.slot);
  if (found == slots_.end()) return NoSlot(append.slot, "appending blocks to");
  if (append.group >= pool_blocks_.size() || append.first_block > plan.blocks.size() ||
      append.num_blocks > plan.blocks.size() - append.first_block ||
      append.first_index > most_table_entries_ ||
      append.num_blocks > most_table_entries_ - append.first_index) {
    return absl::InvalidArgumentError(
        absl::StrFormat("appending %d blocks at entry %d of group %d to slot %d: out of range",
                        append.num_blocks, append.first_index, append.group, Number(append.slot)));
  }
  const std::span<const BlockId> blocks =
      std::span(plan.blocks).subspan(append.first_block, append.num_blocks);
  for (const BlockId block : blocks) {
    if (static_cast<uint32_t>(block) < pool_blocks_[append.group]) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "appending block %d of group %d to slot %d: the pool has %d", static_cast<uint32_t>(block),
        append.group, Number(append.slot), pool_blocks_[append.group]));
  }
  if (blocks.empty()) return absl::OkStatus();
  std::vector<uint32_t>& table = found->second.tables[append.group];
  uint32_t& first_usable = found->second.first_usable[append.group];
  const uint32_t end = append.first_index + append.num_blocks;
  if (append.first_index > table.size()) first_usable = append.first_index;
  if (end > table.size()) table.resize(end, kHole);
  for (size_t i = 0; i < blocks.size(); ++i) {
    table[append.first_index + i] = static_cast<uint32_t>(blocks[i]);
  }
  if (append.first_index < first_usable && end >= first_usable) {
    first_usable = append.first_index;
    while (first_usable > 0 && table[first_usable - 1] != kHole) --first_usable;
  }
  return absl::OkStatus();
}

absl::Status ExecutorSlots::ApplyDiff(const StepPlan& plan) {
  absl::Status first;
  const auto keep = [&](absl::Status status) {
    if (first.ok()) first = std::move(status);
  };
  for (const SlotId slot : plan.closed) {
    computed_at_.erase(slot);
    if (slots_.erase(slot) == 0) keep(NoSlot(slot, "closing"));
  }
  for (const SlotOpen& open : plan.opened) keep(Open(open));
  for (const BlockAppend& append : plan.appends) keep(Append(plan, append));
  return first;
}

absl::Status ExecutorSlots::CheckCopies(const StepPlan& plan) const {
  for (const BlockCopy& copy : plan.copies) {
    if (copy.group < pool_blocks_.size() &&
        static_cast<uint32_t>(copy.from) < pool_blocks_[copy.group] &&
        static_cast<uint32_t>(copy.to) < pool_blocks_[copy.group]) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrFormat(
        "copying block %d to %d in group %d: out of range", static_cast<uint32_t>(copy.from),
        static_cast<uint32_t>(copy.to), copy.group));
  }
  return absl::OkStatus();
}

// Blocks for all positions that the row writes or sees, and none that another row writes too.
absl::Status ExecutorSlots::CheckTables(const Row& row, const ExecutorSlot& slot) {
  const int32_t block_tokens = shape_.kv.block_tokens;
  for (size_t g = 0; g < pool_blocks_.size(); ++g) {
    const KvGroup& group = shape_.kv.groups[g];
    const std::vector<uint32_t>& table = slot.tables[g];
    const int32_t oldest =
        group.kind == GroupKind::kWindow ? std::max(0, row.position - group.window_tokens + 1) : 0;
    const auto first = static_cast<uint32_t>(oldest / block_tokens);
    const auto first_written = static_cast<uint32_t>(row.position / block_tokens);
    const auto end = static_cast<uint32_t>((row.position + row.num_tokens - 1) / block_tokens + 1);
    if (end > table.size() || first < slot.first_usable[g]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "slot %d has no blocks in group %d for positions %d to %d: entries %d to %d of %d are "
          "needed and usable are %d onwards",
          Number(row.slot), g, oldest, row.position + row.num_tokens - 1, first, end - 1,
          table.size(), slot.first_usable[g]));
    }
    for (uint32_t i = first_written; i < end; ++i) {
      if (std::exchange(written_at_[g][table[i]], check_) != check_) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("block %d of group %d is written by two rows", table[i], g));
    }
  }
  return absl::OkStatus();
}

absl::Status ExecutorSlots::CheckRow(const StepPlan& plan, const Row& row,
                                     const ExecutorSlot& slot) {
  if (row.adapter >= 0 || row.draft_parent >= 0 || row.embedding >= 0 || row.grammar >= 0) {
    return absl::UnimplementedError(
        absl::StrFormat("slot %d: this executor has no adapters, drafts, embeddings or grammars",
                        Number(row.slot)));
  }
  if (row.position < 0 || row.num_tokens < 1 || row.num_tokens > shape_.max_context_tokens ||
      row.position > shape_.max_context_tokens - row.num_tokens) {
    return absl::InvalidArgumentError(
        absl::StrFormat("slot %d: %d tokens at position %d, and the context has %d",
                        Number(row.slot), row.num_tokens, row.position, shape_.max_context_tokens));
  }
  if (row.first_token > plan.tokens.size() ||
      static_cast<uint32_t>(row.num_tokens) > plan.tokens.size() - row.first_token) {
    return absl::InvalidArgumentError(
        absl::StrFormat("slot %d: tokens outside of the plan's", Number(row.slot)));
  }
  if (std::exchange(computed_at_[row.slot], check_) == check_) {
    return absl::InvalidArgumentError(
        absl::StrFormat("slot %d has two rows in one step", Number(row.slot)));
  }
  return CheckTables(row, slot);
}

absl::Status ExecutorSlots::Resolve(const StepPlan& plan, std::vector<Work>& work,
                                    std::vector<TokenId>& tokens) {
  work.clear();
  tokens.clear();
  ++check_;
  absl::Status status = CheckCopies(plan);
  if (!status.ok()) return status;
  for (const Row& row : plan.rows) {
    const auto found = slots_.find(row.slot);
    if (found == slots_.end()) return NoSlot(row.slot, "computing");
    status = CheckRow(plan, row, found->second);
    if (!status.ok()) return status;
    for (int32_t i = 0; i < row.num_tokens; ++i) {
      TokenId token = plan.tokens[row.first_token + static_cast<uint32_t>(i)];
      if (token == TokenId::kPending && i == 0) token = found->second.last_sampled;
      const auto id = static_cast<int32_t>(token);
      if (id < 0 || id >= shape_.vocab_size) {
        return absl::InvalidArgumentError(
            absl::StrFormat("slot %d: token %d is not in the vocabulary of %d, or is pending where "
                            "nothing was sampled",
                            Number(row.slot), id, shape_.vocab_size));
      }
      tokens.push_back(token);
    }
    work.push_back({&found->second, &row});
  }
  return absl::OkStatus();
}

}  // namespace hexad
