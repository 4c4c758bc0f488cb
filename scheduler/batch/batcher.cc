#include "scheduler/batch/batcher.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kvcache/core/check.h"

namespace hexad {
namespace {

// A prompt with fewer blocks is looked up fast enough when it is admitted.
constexpr size_t kLongPromptUnits = 256;
// Room for that many output tokens from the start: a long sequence is not copied as it grows.
constexpr int32_t kOutputRoom = 16384;

BatcherConfig Sane(BatcherConfig config) {
  config.max_running = std::max(1, config.max_running);
  config.max_steps_in_flight = std::max(1, config.max_steps_in_flight);
  config.min_chunk_tokens = std::max(1, config.min_chunk_tokens);
  config.max_chunk_tokens = std::max(config.max_chunk_tokens, config.min_chunk_tokens);
  config.idle_step_factor = std::max(1.0, config.idle_step_factor);
  config.max_step_tokens =
      std::max(config.max_step_tokens, config.max_running + config.min_chunk_tokens);
  return config;
}

// An order with NaN in it is none.
double SaneRank(double rank) {
  return std::isnan(rank) ? std::numeric_limits<double>::infinity() : rank;
}

bool Contains(const std::vector<TokenId>& tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

TokenEvent EndEvent(const Sequence& sequence, FinishReason reason) {
  TokenEvent event;
  event.kind = TokenEvent::Kind::kFinished;
  event.request = sequence.id;
  event.reason = reason;
  event.prompt_tokens = sequence.prompt_tokens;
  event.cached_tokens = sequence.cached_tokens.value_or(0);
  event.output_tokens = sequence.output_tokens;
  event.first_scheduled = sequence.first_scheduled;
  return event;
}

}  // namespace

Batcher::Batcher(BatcherConfig config, KvLayout kv, const std::vector<uint32_t>& pool_blocks,
                 CostModel cost)
    : config_(Sane(std::move(config))), kv_(std::move(kv), pool_blocks), cost_(std::move(cost)) {
  max_sequence_tokens_ = kv_.CapacityTokens();
  if (config_.max_context_tokens > 0) {
    max_sequence_tokens_ = std::min(max_sequence_tokens_, config_.max_context_tokens);
  }
  for (int32_t slot = config_.max_running; slot > 0; --slot)
    free_slots_.push_back(SlotId{slot - 1});
  slots_.resize(static_cast<size_t>(config_.max_running));
}

Outcome Batcher::On(ReplicaEvent event, absl::Time) {
  const Outcome outcome = std::visit([this](auto& each) { return OnEvent(each); }, event);
  HandleNotices();
  may_plan_ = true;
  return outcome;
}

Outcome Batcher::CheckSubmit(const RequestSpec& spec) const {
  const auto is_negative = [](TokenId token) { return static_cast<int32_t>(token) < 0; };
  if (spec.prompt.empty() || std::any_of(spec.prompt.begin(), spec.prompt.end(), is_negative) ||
      std::any_of(spec.resumed_output.begin(), spec.resumed_output.end(), is_negative)) {
    return Outcome::kInvalid;
  }
  if (draining_) return Outcome::kDraining;
  // One token more must fit, or nothing could be generated.
  if (spec.prompt.size() + spec.resumed_output.size() >=
      static_cast<size_t>(max_sequence_tokens_)) {
    return Outcome::kNeverFits;
  }
  if (static_cast<int64_t>(waiting_.size()) >= config_.max_waiting) return Outcome::kQueueFull;
  return Outcome::kDone;
}

std::unique_ptr<Sequence> Batcher::MakeSequence(RequestSpec spec) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = spec.id;
  sequence->min_new_tokens = spec.stop.min_new_tokens;
  sequence->prompt_tokens = static_cast<int32_t>(spec.prompt.size());
  sequence->output_tokens = static_cast<int32_t>(spec.resumed_output.size());
  const size_t known = spec.prompt.size() + spec.resumed_output.size();
  sequence->max_tokens = static_cast<int32_t>(std::min<int64_t>(
      max_sequence_tokens_,
      static_cast<int64_t>(sequence->prompt_tokens) + std::max(0, spec.stop.max_new_tokens)));
  const size_t room =
      std::max(known, std::min(known + kOutputRoom, static_cast<size_t>(sequence->max_tokens)));
  sequence->tokens.reserve(room);
  sequence->tokens = spec.prompt;
  sequence->tokens.insert(sequence->tokens.end(), spec.resumed_output.begin(),
                          spec.resumed_output.end());
  sequence->keys.reserve(room / kUnitTokens);
  sequence->keys.assign(
      spec.unit_keys.begin(),
      spec.unit_keys.begin() + std::min(spec.unit_keys.size(), known / kUnitTokens));
  hasher_.Extend(spec.root_key, sequence->tokens, sequence->keys);
  for (TokenId token : spec.stop.stop_tokens) {
    const bool ignored =
        spec.stop.ignore_end_of_sequence && Contains(config_.end_of_sequence, token);
    if (!ignored) sequence->stops.push_back(token);
  }
  spec.rank = SaneRank(spec.rank);
  spec.prompt.clear();
  spec.resumed_output = {};
  spec.unit_keys.clear();
  sequence->spec = std::move(spec);
  if (sequence->keys.size() >= kLongPromptUnits) {
    sequence->opening = MakeOpening(*sequence);
    sequence->prefix_guess = kv_.Probe(sequence->keys, sequence->known_tokens());
  }
  return sequence;
}

std::unique_ptr<SlotOpen> Batcher::MakeOpening(const Sequence& sequence) {
  auto open = std::make_unique<SlotOpen>();
  open->request = sequence.id;
  open->sampling = sequence.spec.sampling;
  open->min_new_tokens = sequence.spec.stop.min_new_tokens;
  if (open->min_new_tokens > 0) open->masked_until_min = sequence.stops;
  const auto prompt_end = sequence.tokens.begin() + sequence.prompt_tokens;
  open->prompt.assign(sequence.tokens.begin(), prompt_end);
  open->output.assign(prompt_end, sequence.tokens.end());
  return open;
}

Outcome Batcher::OnEvent(Submit& event) {
  const RequestId id = event.spec.id;
  if (Find(id)) return Outcome::kDuplicate;
  const Outcome outcome = CheckSubmit(event.spec);
  if (outcome != Outcome::kDone) {
    Sequence refused;
    refused.id = id;
    refused.prompt_tokens = static_cast<int32_t>(event.spec.prompt.size());
    refused.output_tokens = static_cast<int32_t>(event.spec.resumed_output.size());
    events_.push_back(EndEvent(refused, FinishReason::kFailed));
    return outcome;
  }
  std::unique_ptr<Sequence> sequence = MakeSequence(std::move(event.spec));
  if (sequence->known_tokens() >= sequence->max_tokens) {
    events_.push_back(EndEvent(*sequence, FinishReason::kLength));
    return Outcome::kDone;
  }
  waiting_.insert(sequence.get());
  sequences_[id] = std::move(sequence);
  return Outcome::kDone;
}

Outcome Batcher::OnEvent(const Reorder& event) {
  if (event.term < newest_term_) return Outcome::kStaleTerm;
  newest_term_ = event.term;
  Sequence* sequence = Find(event.request);
  if (!sequence) return Outcome::kUnknownRequest;
  const bool waits = sequence->state != Sequence::State::kRunning;
  if (waits) waiting_.erase(sequence);
  sequence->spec.rank = SaneRank(event.rank);
  if (waits) {
    waiting_.insert(sequence);
  } else {
    std::sort(running_.begin(), running_.end(), SequenceOrder());
  }
  return Outcome::kDone;
}

Outcome Batcher::OnEvent(const Cancel& event) {
  Sequence* sequence = Find(event.request);
  if (!sequence) return Outcome::kUnknownRequest;
  Finish(*sequence, FinishReason::kCancelled);
  return Outcome::kDone;
}

Outcome Batcher::OnEvent(const StopAt& event) {
  Sequence* sequence = Find(event.request);
  if (!sequence) return Outcome::kUnknownRequest;
  const int32_t counted = std::clamp(event.output_tokens, 0, sequence->output_tokens);
  totals_.output_tokens -= sequence->output_tokens - counted;
  sequence->output_tokens = counted;
  Finish(*sequence, FinishReason::kStop);
  return Outcome::kDone;
}

Outcome Batcher::OnEvent(const Drain&) {
  draining_ = true;
  return Outcome::kDone;
}

Sequence* Batcher::Find(RequestId request) {
  const auto found = sequences_.find(request);
  return found == sequences_.end() ? nullptr : found->second.get();
}

void Batcher::Finish(Sequence& sequence, FinishReason reason) {
  events_.push_back(EndEvent(sequence, reason));
  if (sequence.state == Sequence::State::kRunning) {
    LeaveSlot(sequence);
  } else {
    waiting_.erase(&sequence);
  }
  CloseTable(sequence);
  sequences_.erase(RequestId{sequence.id});
}

void Batcher::Requeue(Sequence& sequence) {
  LeaveSlot(sequence);
  CloseTable(sequence);
  waiting_.insert(&sequence);
  HandleNotices();
}

void Batcher::LeaveSlot(Sequence& sequence) {
  HEXAD_CHECK(std::erase(running_, &sequence) == 1, "not a running sequence");
  slots_[static_cast<size_t>(sequence.slot)] = nullptr;
  closed_slots_.push_back(sequence.slot);
  free_slots_.push_back(sequence.slot);
  // What is in flight is dropped: no row has this incarnation.
  sequence.incarnation = 0;
  sequence.samples_in_flight = 0;
}

void Batcher::CloseTable(Sequence& sequence) {
  const Sequence::State was = std::exchange(sequence.state, Sequence::State::kWaiting);
  if (was == Sequence::State::kWaiting) return;
  if (was != Sequence::State::kRunning) --queued_tables_;
  tables_.erase(sequence.table);
  kv_.Close(sequence.table);
}

// Those who lost the table they followed give theirs back and look again: the prefix so far is
// cached, and one of them will compute the rest while the others follow it.
void Batcher::HandleNotices() {
  for (;;) {
    const std::vector<KvNotice> notices = kv_.TakeNotices();
    if (notices.empty()) return;
    for (const KvNotice& notice : notices) {
      const auto found = tables_.find(notice.table);
      if (found == tables_.end()) continue;
      Sequence& sequence = *found->second;
      if (notice.complete) {
        sequence.state = Sequence::State::kReady;
      } else {
        CloseTable(sequence);
      }
    }
  }
}

Batcher::StepInFlight Batcher::TakeOldestStep(StepId step) {
  HEXAD_CHECK(!in_flight_.empty() && in_flight_.front().step == step, "steps end in plan order");
  StepInFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  return oldest;
}

Outcome Batcher::OnEvent(StepDone& event) {
  StepInFlight step = TakeOldestStep(event.result.step);
  cost_.Observe(step.shape, event.result.device_time);
  events_.reserve(events_.size() + step.rows.size());
  size_t sampled = 0;
  for (size_t i = 0; i < step.rows.size(); ++i) {
    PrefetchRows(step.rows, i);
    const RowInFlight& row = step.rows[i];
    RowResult* result = nullptr;
    if (row.sample) {
      HEXAD_CHECK(sampled < event.result.rows.size(), "a sampled row has no result");
      result = &event.result.rows[sampled++];
      HEXAD_CHECK(result->request == row.request, "results come in plan order");
    }
    ApplyRow(row, result);
  }
  HEXAD_CHECK(sampled == event.result.rows.size(), "a result of no row");
  kv_.EndStep();
  spare_rows_.push_back(std::move(step.rows));
  return Outcome::kDone;
}

void Batcher::PrefetchRows(const std::vector<RowInFlight>& rows, size_t at) const {
  if (at + 2 * kRowsAhead < rows.size()) {
    const char* far =
        reinterpret_cast<const char*>(slots_[static_cast<size_t>(rows[at + 2 * kRowsAhead].slot)]);
    __builtin_prefetch(far, 1);
    __builtin_prefetch(far + 64, 1);
  }
  if (at + kRowsAhead >= rows.size()) return;
  const RowInFlight& near = rows[at + kRowsAhead];
  const Sequence* sequence = slots_[static_cast<size_t>(near.slot)];
  if (!sequence) return;
  __builtin_prefetch(sequence->tokens.data() + sequence->tokens.size(), 1);
  if (near.ends_block && !sequence->keys.empty()) kv_.PrefetchCommit(sequence->keys.back());
}

Outcome Batcher::OnEvent(const StepFailed& event) {
  const StepInFlight step = TakeOldestStep(event.step);
  ++totals_.failed_steps;
  for (const RowInFlight& row : step.rows) {
    Sequence* sequence = Find(row);
    if (!sequence) continue;
    if (++sequence->failures > 1) {
      Finish(*sequence, FinishReason::kFailed);
    } else {
      Requeue(*sequence);
    }
  }
  kv_.EndStep();
  return Outcome::kDone;
}

Sequence* Batcher::Find(const RowInFlight& row) {
  Sequence* sequence = slots_[static_cast<size_t>(row.slot)];
  return sequence && sequence->incarnation == row.incarnation ? sequence : nullptr;
}

void Batcher::ApplyRow(const RowInFlight& row, RowResult* result) {
  Sequence* sequence = Find(row);
  if (!sequence) return;
  std::optional<FinishReason> end;
  if (result) {
    --sequence->samples_in_flight;
    end = AppendToken(*sequence, *result);
  }
  kv_.Commit(sequence->table, kv_.computed_tokens(sequence->table) + row.num_tokens,
             sequence->keys);
  if (end) Finish(*sequence, *end);
}

std::optional<FinishReason> Batcher::AppendToken(Sequence& sequence, RowResult& result) {
  HEXAD_CHECK(result.tokens.size() <= 1, "more tokens than were asked for");
  // The executor could not sample: nothing of the vocabulary was left to choose.
  if (result.tokens.empty()) return FinishReason::kFailed;
  const TokenId token = result.tokens[0].token;
  const bool stops =
      sequence.output_tokens >= sequence.min_new_tokens && Contains(sequence.stops, token);
  sequence.tokens.push_back(token);
  ++sequence.output_tokens;
  ++totals_.output_tokens;
  if (sequence.tokens.size() % kUnitTokens == 0) {
    hasher_.Extend(sequence.spec.root_key, sequence.tokens, sequence.keys);
  }
  if (stops) return FinishReason::kStop;
  TokenEvent event;
  event.request = sequence.id;
  event.tokens = std::move(result.tokens);
  events_.push_back(std::move(event));
  if (sequence.known_tokens() >= sequence.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

std::vector<TokenEvent> Batcher::TakeEvents() { return std::exchange(events_, {}); }

absl::Time Batcher::NextWake() const {
  return may_plan_ ? absl::InfinitePast() : absl::InfiniteFuture();
}

BatcherStats Batcher::stats() const {
  BatcherStats stats = totals_;
  stats.running = static_cast<int32_t>(running_.size());
  stats.waiting = static_cast<int32_t>(waiting_.size());
  stats.following = queued_tables_;
  stats.steps_in_flight = static_cast<int32_t>(in_flight_.size());
  stats.step_time_error = cost_.error();
  for (uint32_t g = 0; g < kv_.layout().groups.size(); ++g) {
    stats.free_blocks.push_back(kv_.pool(g).available());
    stats.total_blocks.push_back(kv_.pool(g).total());
  }
  return stats;
}

}  // namespace hexad
