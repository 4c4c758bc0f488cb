#include <algorithm>
#include <limits>
#include <utility>

#include "kvcache/core/check.h"
#include "scheduler/batch/batcher.h"

namespace hexad {
namespace {

int32_t RoundUp(int32_t tokens, int32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens * block_tokens;
}

// Keys attended by `num_tokens` queries that start at `position`.
int64_t ContextTokens(int64_t position, int64_t num_tokens) {
  return num_tokens * position + num_tokens * (num_tokens + 1) / 2;
}

// A row that computes one token and samples is a decode, whatever it was before.
StepShape WithRow(StepShape shape, const Sequence& sequence, int32_t num_tokens) {
  const bool samples = num_tokens == sequence.remaining();
  const int64_t context_tokens = ContextTokens(sequence.scheduled, num_tokens);
  if (num_tokens == 1 && samples) {
    ++shape.decode_rows;
    shape.decode_context_tokens += context_tokens;
  } else {
    shape.prefill_tokens += num_tokens;
    shape.prefill_context_tokens += context_tokens;
  }
  shape.sampled_rows += samples;
  return shape;
}

}  // namespace

struct Batcher::NextStep {
  absl::Time now;
  StepPlan plan;
  StepShape shape;
  std::vector<RowInFlight> rows;
  std::vector<TableId> tables;
  std::vector<Sequence*> prefills;  // those that run, in order
  bool somebody_decodes = false;    // in this step or, for want of its input, in the next one
  bool has_prefill = false;
  bool short_of_room = false;  // a decode found no block: nothing else may take one
  bool gave_way = false;       // somebody gave blocks back: worth another try

  int32_t num_tokens() const { return static_cast<int32_t>(plan.tokens.size()); }
};

std::optional<StepPlan> Batcher::Plan(absl::Time now) {
  if (static_cast<int64_t>(in_flight_.size()) >= config_.max_steps_in_flight ||
      LongStepInFlight()) {
    may_plan_ = false;
    return std::nullopt;
  }
  for (;;) {
    NextStep next;
    next.now = now;
    next.tables = std::move(spare_tables_);
    next.tables.clear();
    if (!spare_rows_.empty()) {
      next.rows = std::move(spare_rows_.back());
      next.rows.clear();
      spare_rows_.pop_back();
    }
    PlanDecodes(next);
    if (!next.short_of_room) PlanPrefills(next);
    if (!next.short_of_room) Admit(next);
    if (!next.rows.empty()) return Begin(std::move(next));
    spare_tables_ = std::move(next.tables);
    spare_rows_.push_back(std::move(next.rows));
    if (sequences_.empty() || !in_flight_.empty()) {
      may_plan_ = false;
      return std::nullopt;
    }
    // Nothing runs that could free a block: somebody has to give way. Alone, everybody fits.
    HEXAD_CHECK(next.gave_way || Unblock(), "a request waits for ever");
  }
}

// A step without decodes that takes longer than the target: whoever comes meanwhile shall wait for
// it alone and not for the next one too. To plan that only afterwards costs far less than such a
// step takes.
bool Batcher::LongStepInFlight() const {
  return !in_flight_.empty() && in_flight_.back().shape.decode_rows == 0 &&
         cost_.StepTime(in_flight_.back().shape) > config_.step_target;
}

void Batcher::PlanDecodes(NextStep& next) {
  next.rows.reserve(running_.size());
  next.tables.reserve(running_.size());
  next.plan.rows.reserve(running_.size());
  next.plan.tokens.reserve(running_.size());
  for (size_t i = 0; i < running_.size(); ++i) {
    if (i + kRowsAhead < running_.size()) {
      const char* ahead = reinterpret_cast<const char*>(running_[i + kRowsAhead]);
      __builtin_prefetch(ahead, 1);
      __builtin_prefetch(ahead + 64, 1);
    }
    Sequence& sequence = *running_[i];
    if (sequence.remaining() != 1) {
      if (sequence.remaining() > 1) next.prefills.push_back(&sequence);
      continue;
    }
    if (sequence.planned_tokens() >= sequence.max_tokens) continue;
    next.somebody_decodes = true;
    // A pending input is what the step before this one samples. After a step without the sequence
    // the token has to be known.
    const bool pending = sequence.scheduled >= sequence.known_tokens();
    if (pending && sequence.last_sample_step != last_step_) continue;
    if (MakeRoom(sequence, sequence.scheduled + 1, next)) AddRow(next, sequence, 1);
  }
}

// Room for a decode, if need be by preemption of what comes last in order, `sequence` itself
// included. False: not in this step.
bool Batcher::MakeRoom(Sequence& sequence, int32_t num_tokens, NextStep& next) {
  while (!kv_.Grow(sequence.table, num_tokens)) {
    next.short_of_room = true;
    // Blocks of sequences that were ended or preempted come back when the steps in flight end.
    if (kv_.CanGrowLater(sequence.table, sequence.scheduled, num_tokens)) return false;
    if (CloseLatestQueuedTable()) continue;
    Sequence& victim = *running_.back();
    ++totals_.preemptions;
    next.gave_way = true;
    Requeue(victim);
    if (&victim == &sequence) return false;
  }
  return true;
}

bool Batcher::CloseLatestQueuedTable() {
  if (queued_tables_ == 0) return false;
  const auto latest = std::find_if(waiting_.rbegin(), waiting_.rend(), [](const Sequence* each) {
    return each->state != Sequence::State::kWaiting;
  });
  CloseTable(**latest);
  HandleNotices();
  return true;
}

// Each call leaves fewer running, and the last one alone: whoever follows would only come back.
bool Batcher::Unblock() {
  bool gave_way = false;
  while (CloseLatestQueuedTable()) gave_way = true;
  if (running_.size() < 2) return gave_way;
  ++totals_.preemptions;
  Requeue(*running_.back());
  return true;
}

// By order, but whoever is followed by a better one goes with that one.
std::vector<Sequence*> Batcher::PrefillOrder(std::vector<Sequence*> prefills) const {
  if (queued_tables_ == 0 || prefills.size() < 2) return prefills;
  absl::flat_hash_map<const Sequence*, const Sequence*> best_follower;
  for (const auto& [table, sequence] : tables_) {
    if (sequence->state != Sequence::State::kFollowing) continue;
    // Along the chain of followers up to the one that computes.
    for (auto producer = kv_.producer(table); producer; producer = kv_.producer(*producer)) {
      const Sequence*& best = best_follower[tables_.at(*producer)];
      if (!best || SequenceOrder()(sequence, best)) best = sequence;
    }
  }
  const auto effective = [&](const Sequence* sequence) {
    const auto found = best_follower.find(sequence);
    return found != best_follower.end() && SequenceOrder()(found->second, sequence) ? found->second
                                                                                    : sequence;
  };
  std::stable_sort(prefills.begin(), prefills.end(), [&](const Sequence* a, const Sequence* b) {
    return SequenceOrder()(effective(a), effective(b));
  });
  return prefills;
}

void Batcher::PlanPrefills(NextStep& next) {
  if (next.prefills.empty()) return;
  for (Sequence* sequence : PrefillOrder(std::move(next.prefills))) {
    const int32_t wanted = ChunkTokens(*sequence, next);
    if (wanted == 0) return;
    const int32_t chunk =
        kv_.MaxGrow(sequence->table, sequence->scheduled + wanted) - sequence->scheduled;
    if (chunk < 1) continue;
    HEXAD_CHECK(kv_.Grow(sequence->table, sequence->scheduled + chunk), "MaxGrow is not Grow");
    AddRow(next, *sequence, chunk);
  }
}

// Decodes do not wait longer than the target; without any, nobody does.
absl::Duration Batcher::TargetOf(const NextStep& next) const {
  return next.somebody_decodes ? config_.step_target
                               : config_.step_target * config_.idle_step_factor;
}

// The largest chunk within the step's target, which ends on a block boundary, or a unit's, if it is
// not the last one: kernels like whole tiles, followers whole blocks. 0: none in this step.
int32_t Batcher::ChunkTokens(const Sequence& sequence, const NextStep& next) const {
  const int32_t least = std::min(sequence.remaining(), config_.min_chunk_tokens);
  int32_t most = std::min(config_.max_chunk_tokens, config_.max_step_tokens - next.num_tokens());
  if (config_.first_chunk_tokens > 0 && !cost_.knows_prefill()) {
    most = std::min(most, next.somebody_decodes
                              ? config_.min_chunk_tokens
                              : std::max(config_.min_chunk_tokens, config_.first_chunk_tokens));
  }
  most = std::min(most, sequence.remaining());
  if (most < least) return 0;
  const absl::Duration target = TargetOf(next);
  const auto fits = [&](int32_t chunk) {
    return cost_.StepTime(WithRow(next.shape, sequence, chunk)) <= target;
  };
  int32_t chunk = most;
  if (!fits(most)) {
    int32_t too_many = most;
    for (chunk = 0; too_many - chunk > 1;) {
      const int32_t middle = chunk + (too_many - chunk) / 2;
      (fits(middle) ? chunk : too_many) = middle;
    }
  }
  if (chunk < least) return next.has_prefill ? 0 : least;
  if (chunk == sequence.remaining()) return chunk;
  for (const int32_t boundary : {kv_.layout().block_tokens, kUnitTokens}) {
    const int32_t end = (sequence.scheduled + chunk) / boundary * boundary;
    if (end - sequence.scheduled >= least) return end - sequence.scheduled;
  }
  return chunk;
}

// What the running ones will take soon: the rest of their prompts and the next token.
int32_t Batcher::ReservedTokens() const {
  const int32_t block_tokens = kv_.layout().block_tokens;
  int64_t reserved = 0;
  for (const Sequence* sequence : running_) {
    reserved += RoundUp(sequence->planned_tokens() + 1, block_tokens) -
                RoundUp(sequence->scheduled, block_tokens);
  }
  return static_cast<int32_t>(std::min<int64_t>(reserved, std::numeric_limits<int32_t>::max()));
}

void Batcher::Admit(NextStep& next) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Sequence& sequence = **it++;
    if (static_cast<int64_t>(running_.size()) >= config_.max_running) return;
    if (sequence.state == Sequence::State::kFollowing) continue;
    // Waiting ones with a table count as running, so that the number of tables is bounded.
    if (sequence.state == Sequence::State::kWaiting &&
        static_cast<int64_t>(running_.size()) + queued_tables_ >= config_.max_running) {
      if (queued_tables_ == 0) return;
      continue;
    }
    if (next.num_tokens() + config_.min_chunk_tokens > config_.max_step_tokens) return;
    StepShape least = next.shape;
    least.prefill_tokens += config_.min_chunk_tokens;
    if (next.has_prefill && cost_.StepTime(least) > TargetOf(next)) return;
    if (TryAdmit(sequence, next) == Admission::kNoRoom) return;
  }
}

Batcher::Admission Batcher::TryAdmit(Sequence& sequence, NextStep& next) {
  const int32_t block_tokens = kv_.layout().block_tokens;
  const int64_t reserved = ReservedTokens();
  const bool held_blocks = sequence.state == Sequence::State::kReady;
  if (sequence.state == Sequence::State::kWaiting) {
    // Opening a long prompt costs more than a step's planning: not again and again in vain.
    const int64_t missing = sequence.known_tokens() - sequence.last_ready_tokens + reserved;
    if (!running_.empty() && sequence.last_ready_tokens >= 0 &&
        !kv_.HasRoomUnbounded((missing + block_tokens - 1) / block_tokens)) {
      return Admission::kNoRoom;
    }
    const OpenResult opened =
        kv_.Open(sequence.keys, sequence.known_tokens(), std::exchange(sequence.prefix_guess, {}));
    sequence.table = opened.table;
    tables_[opened.table] = &sequence;
    ++queued_tables_;
    const bool follows = opened.promised_tokens > opened.ready_tokens;
    sequence.state = follows ? Sequence::State::kFollowing : Sequence::State::kReady;
    if (follows) return Admission::kFollows;
  }
  sequence.scheduled = kv_.ready_tokens(sequence.table);
  const int32_t least = std::min(sequence.remaining(), config_.min_chunk_tokens);
  const int32_t wanted = std::max(ChunkTokens(sequence, next), least);
  const int32_t chunk =
      kv_.MaxGrow(sequence.table, sequence.scheduled + wanted) - sequence.scheduled;
  const bool whole_fits =
      running_.empty() || kv_.CanGrowUnbounded(sequence.table, sequence.known_tokens() + reserved);
  if (!whole_fits || chunk < 1) {
    sequence.last_ready_tokens = sequence.scheduled;
    next.gave_way |= held_blocks;
    CloseTable(sequence);
    HandleNotices();
    return Admission::kNoRoom;
  }
  HEXAD_CHECK(kv_.Grow(sequence.table, sequence.scheduled + chunk), "MaxGrow is not Grow");
  Start(sequence, next);
  AddRow(next, sequence, chunk);
  return Admission::kAdmitted;
}

// A waiting sequence with a table gets a slot.
void Batcher::Start(Sequence& sequence, NextStep& next) {
  waiting_.erase(&sequence);
  --queued_tables_;
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &sequence, SequenceOrder()),
                  &sequence);
  sequence.state = Sequence::State::kRunning;
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[static_cast<size_t>(sequence.slot)] = &sequence;
  sequence.incarnation = ++last_incarnation_;
  sequence.shipped_tokens = 0;
  if (!sequence.cached_tokens) {
    sequence.cached_tokens = std::min(sequence.scheduled, sequence.prompt_tokens);
    sequence.first_scheduled = next.now;
    totals_.prompt_tokens += sequence.prompt_tokens;
    totals_.cached_tokens += *sequence.cached_tokens;
  }

  if (!sequence.opening) sequence.opening = MakeOpening(sequence);
  sequence.opening->slot = sequence.slot;
  next.plan.opened.push_back(std::move(*sequence.opening));
  sequence.opening.reset();
}

void Batcher::AddRow(NextStep& next, Sequence& sequence, int32_t num_tokens) {
  const bool samples = num_tokens == sequence.remaining();
  const StepShape before = next.shape;
  next.shape = WithRow(before, sequence, num_tokens);
  next.has_prefill |= next.shape.prefill_tokens > before.prefill_tokens;

  Row row;
  row.slot = sequence.slot;
  row.position = sequence.scheduled;
  row.num_tokens = num_tokens;
  row.first_token = static_cast<uint32_t>(next.plan.tokens.size());
  row.sample = samples;
  next.plan.rows.push_back(row);
  for (int32_t i = sequence.scheduled; i < sequence.scheduled + num_tokens; ++i) {
    next.plan.tokens.push_back(i < sequence.known_tokens() ? sequence.tokens[i]
                                                           : TokenId::kPending);
  }
  if (kv_.capacity_tokens(sequence.table) != sequence.shipped_tokens) AppendBlocks(next, sequence);
  const int32_t end = sequence.scheduled + num_tokens;
  const int32_t past_block = end & (kUnitTokens - 1);  // blocks are multiples of a unit
  next.rows.push_back({sequence.id, sequence.incarnation, sequence.slot, num_tokens, samples,
                       past_block < num_tokens});
  next.tables.push_back(sequence.table);

  sequence.scheduled += num_tokens;
  if (samples) {
    ++sequence.samples_in_flight;
    sequence.last_sample_step = last_step_ + 1;
  }
}

void Batcher::AppendBlocks(NextStep& next, Sequence& sequence) {
  const uint32_t shipped = sequence.shipped_tokens / kv_.layout().block_tokens;
  for (uint32_t g = 0; g < kv_.layout().groups.size(); ++g) {
    const std::span<const BlockId> blocks = kv_.blocks(sequence.table, g);
    const uint32_t end = static_cast<uint32_t>(blocks.size());
    const uint32_t first = std::max(shipped, kv_.first_block(sequence.table, g));
    if (first >= end) continue;
    BlockAppend append;
    append.slot = sequence.slot;
    append.group = g;
    append.first_index = first;
    append.first_block = static_cast<uint32_t>(next.plan.blocks.size());
    append.num_blocks = end - first;
    next.plan.appends.push_back(append);
    next.plan.blocks.insert(next.plan.blocks.end(), blocks.begin() + first, blocks.end());
  }
  sequence.shipped_tokens = kv_.capacity_tokens(sequence.table);
}

StepPlan Batcher::Begin(NextStep next) {
  next.plan.step = StepId{++last_step_};
  next.plan.closed = std::exchange(closed_slots_, {});
  kv_.BeginStep(next.tables);
  totals_.last_step = next.shape;
  spare_tables_ = std::move(next.tables);
  in_flight_.push_back({next.plan.step, next.shape, std::move(next.rows)});
  return std::move(next.plan);
}

}  // namespace hexad
