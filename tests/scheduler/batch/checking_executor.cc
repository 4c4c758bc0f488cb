#include "tests/scheduler/batch/checking_executor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hexad::testing {
namespace {

constexpr uint64_t kGarbage = 0xdeadbeefdeadbeef;
constexpr TokenId kGarbageToken{123456789};

std::string Name(RequestId id) { return "request " + std::to_string(static_cast<uint64_t>(id)); }
std::string Name(uint32_t group, BlockId block) {
  return "block " + std::to_string(static_cast<uint32_t>(block)) + " of group " +
         std::to_string(group);
}

}  // namespace

uint64_t MixHash(uint64_t hash, uint64_t value) {
  uint64_t mixed = hash + 0x9e3779b97f4a7c15 * (value + 1);
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

CheckingExecutor::CheckingExecutor(KvLayout layout, std::vector<uint32_t> pools, int32_t max_slots,
                                   Sampler sampler, Root root)
    : layout_(std::move(layout)),
      pools_(std::move(pools)),
      max_slots_(max_slots),
      sampler_(std::move(sampler)),
      root_(std::move(root)) {
  for (uint32_t blocks : pools_) {
    content_.emplace_back(static_cast<size_t>(blocks) * layout_.block_tokens, kGarbage);
  }
}

void CheckingExecutor::Complain(std::string what) {
  if (!failure_) failure_ = std::move(what);
}

void CheckingExecutor::ApplyDiff(const StepPlan& plan) {
  for (SlotId slot : plan.closed) {
    if (tables_.erase(slot) == 0) Complain("a slot was closed that is not open");
  }
  for (const SlotOpen& open : plan.opened) {
    if (static_cast<int32_t>(open.slot) >= max_slots_) Complain("a slot id is too high");
    if (tables_.count(open.slot)) Complain("a slot was opened twice");
    SlotTable& table = tables_[open.slot];
    table = {};
    requests_[open.slot] = open.request;
    table.opening = ++openings_;
    table.blocks.resize(pools_.size());
  }
  for (const BlockAppend& append : plan.appends) {
    const auto table = tables_.find(append.slot);
    if (table == tables_.end()) return Complain("blocks for a slot that is not open");
    std::map<uint32_t, BlockId>& blocks = table->second.blocks[append.group];
    for (uint32_t i = 0; i < append.num_blocks; ++i) {
      const BlockId block = plan.blocks[append.first_block + i];
      if (static_cast<uint32_t>(block) >= pools_[append.group]) return Complain("no such block");
      if (!blocks.emplace(append.first_index + i, block).second) Complain("a table entry changed");
    }
  }
}

CheckingExecutor::PlannedRow CheckingExecutor::Resolve(const StepPlan& plan, const Row& row) {
  PlannedRow planned;
  planned.row = row;
  planned.blocks.resize(pools_.size());
  const auto found = tables_.find(row.slot);
  if (found == tables_.end()) {
    Complain("a row of a slot that is not open");
    return planned;
  }
  SlotTable& table = found->second;
  planned.opening = table.opening;
  if (row.num_tokens < 1) Complain("an empty row");
  if (table.next_position && *table.next_position != row.position) Complain("a gap between rows");
  if (!table.next_position && row.position % layout_.block_tokens != 0) {
    Complain("a cached prefix that ends inside a block");
  }
  const int32_t end = row.position + row.num_tokens;
  table.next_position = end;
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const KvGroup& group = layout_.groups[g];
    const int32_t first_read =
        group.kind == GroupKind::kWindow ? std::max(0, row.position - group.window_tokens + 1) : 0;
    for (int32_t i = first_read / layout_.block_tokens; i * layout_.block_tokens < end; ++i) {
      const auto block = table.blocks[g].find(i);
      if (block == table.blocks[g].end()) {
        Complain("a row reads or writes outside of its blocks");
        continue;
      }
      planned.blocks[g].insert(*block);
      const bool written = (i + 1) * layout_.block_tokens > row.position;
      planned.reads.push_back({g, block->second});
      if (written) planned.writes.push_back({g, block->second});
    }
  }
  return planned;
}

// Steps in flight may overlap: nobody else may use what this row writes, nor write what it reads.
void CheckingExecutor::CheckOverlap(const PlannedRow& row) {
  const auto common = [](const std::vector<Place>& a, const std::vector<Place>& b) -> const Place* {
    for (const Place& place : a) {
      if (std::find(b.begin(), b.end(), place) != b.end()) return &place;
    }
    return nullptr;
  };
  for (const Step& step : steps_) {
    for (const PlannedRow& other : step.rows) {
      if (other.opening == row.opening) continue;
      if (const Place* place = common(row.writes, other.reads)) {
        Complain(Name(place->group, place->block) +
                 " is written while another sequence's row in flight uses it");
      }
      if (const Place* place = common(row.reads, other.writes)) {
        Complain(Name(place->group, place->block) +
                 " is read before the row in flight that writes it is complete");
      }
    }
  }
}

void CheckingExecutor::Submit(StepPlan plan) {
  if (static_cast<uint64_t>(plan.step) != ++last_step_) Complain("steps are not consecutive");
  if (plan.rows.empty()) Complain("a plan without rows");
  ApplyDiff(plan);
  std::set<SlotId> with_row;
  steps_.push_back({std::move(plan), {}});
  Step& step = steps_.back();
  for (const Row& row : step.plan.rows) {
    if (!with_row.insert(row.slot).second) Complain("two rows of one slot");
    PlannedRow planned = Resolve(step.plan, row);
    CheckOverlap(planned);
    step.rows.push_back(std::move(planned));
  }
}

uint64_t& CheckingExecutor::Content(const PlannedRow& row, uint32_t group, int32_t position) {
  static uint64_t nowhere;
  const auto block = row.blocks[group].find(position / layout_.block_tokens);
  if (block == row.blocks[group].end()) return nowhere = kGarbage;
  return content_[group][static_cast<size_t>(block->second) * layout_.block_tokens +
                         position % layout_.block_tokens];
}

StepResult CheckingExecutor::Finish(bool fail) {
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  for (SlotId slot : step.plan.closed) slots_.erase(slot);
  for (const SlotOpen& open : step.plan.opened) {
    SlotState& slot = slots_[open.slot];
    slot = {};
    slot.open = open;
    slot.history = open.prompt;
    slot.history.insert(slot.history.end(), open.output.begin(), open.output.end());
  }
  StepResult result;
  result.step = step.plan.step;
  result.device_time = absl::Milliseconds(static_cast<uint64_t>(step.plan.step) * 7 % 40);
  for (const PlannedRow& row : step.rows) {
    if (fail) slots_[row.row.slot].broken = true;
    ExecuteRow(step, row, result);
  }
  return result;
}

void CheckingExecutor::ExecuteRow(const Step& step, const PlannedRow& planned, StepResult& result) {
  const Row& row = planned.row;
  SlotState& slot = slots_[row.slot];
  const int32_t end = row.position + row.num_tokens;
  for (int32_t i = 0; i < row.num_tokens && !slot.broken; ++i) {
    const TokenId token = step.plan.tokens[row.first_token + i];
    const size_t position = row.position + i;
    if (position >= slot.history.size()) {
      Complain("a token of " + Name(slot.open.request) + " that is not known");
      slot.broken = true;
    } else if (token == TokenId::kPending) {
      const bool sampled_just_now =
          position + 1 == slot.history.size() &&
          static_cast<uint64_t>(slot.last_sample) + 1 == static_cast<uint64_t>(step.plan.step);
      if (!sampled_just_now) Complain("a pending token that the step before did not sample");
    } else if (token != slot.history[position]) {
      Complain("a wrong token of " + Name(slot.open.request));
    }
  }
  std::vector<uint64_t> hashes;  // of the history up to each position
  if (!slot.broken) {
    uint64_t hash = root_(slot.open.request);
    for (int32_t i = 0; i < end; ++i) {
      hash = MixHash(hash, static_cast<uint64_t>(slot.history[i]));
      hashes.push_back(hash);
    }
  }
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    for (int32_t position = row.position; position < end; ++position) {
      Content(planned, g, position) = slot.broken ? kGarbage : hashes[position];
    }
  }
  if (!slot.broken) CheckReads(planned, hashes);
  if (!row.sample) return;
  TokenId token = kGarbageToken;
  if (!slot.broken) {
    if (static_cast<size_t>(end) != slot.history.size()) Complain("a sample amid the history");
    const int32_t num_output = static_cast<int32_t>(slot.history.size() - slot.open.prompt.size());
    token = sampler_(slot.open.request, slot.open, slot.history, num_output);
  }
  slot.history.push_back(token);
  slot.last_sample = step.plan.step;
  SampledToken sampled;
  sampled.token = token;
  result.rows.push_back({row.slot, slot.open.request, {sampled}, 0});
}

void CheckingExecutor::CheckReads(const PlannedRow& row, const std::vector<uint64_t>& hashes) {
  for (uint32_t g = 0; g < pools_.size(); ++g) {
    const KvGroup& group = layout_.groups[g];
    const int32_t first = group.kind == GroupKind::kWindow
                              ? std::max(0, row.row.position - group.window_tokens + 1)
                              : 0;
    for (int32_t position = first; position < static_cast<int32_t>(hashes.size()); ++position) {
      if (Content(row, g, position) == hashes[position]) continue;
      return Complain("group " + std::to_string(g) + " position " + std::to_string(position) +
                      " does not hold the KV of this history");
    }
  }
}

}  // namespace hexad::testing
