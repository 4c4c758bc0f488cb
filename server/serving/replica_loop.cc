#include "server/serving/replica_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "server/status.h"

namespace hexad {
namespace {

// An engine whose step takes longer than this is stuck: the longest step of a slow CPU is seconds.
constexpr absl::Duration kStuckAfter = absl::Minutes(5);
// A single failed step may be one bad request; this many in a row are a dead engine.
constexpr int32_t kDeadAfterFailures = 5;

absl::Status RefusalStatus(Outcome outcome, const CallState& call, int32_t max_sequence_tokens) {
  switch (outcome) {
    case Outcome::kQueueFull:
      return WithRetryAfter(
          absl::UnavailableError("The server's queue is full (policy.batch.max_waiting)"), 1);
    case Outcome::kDraining:
      return absl::UnavailableError("The server is shutting down; send the request again");
    case Outcome::kNeverFits:
      return WithParam(absl::InvalidArgumentError(absl::StrFormat(
                           "The prompt has %d tokens; the KV cache of this server holds sequences "
                           "of at most %d tokens (kvcache.host)",
                           call.prompt_tokens, max_sequence_tokens)),
                       "messages", "context_length_exceeded");
    default:
      return absl::InternalError("the batcher refused the request");
  }
}

}  // namespace

ReplicaLoop::ReplicaLoop(std::string name, BatcherConfig config, std::unique_ptr<Executor> executor,
                         Hooks hooks, ModelMetrics& metrics, Logger& log)
    : name_(std::move(name)),
      hooks_(std::move(hooks)),
      metrics_(metrics),
      log_(log),
      batcher_(std::move(config), executor->shape().kv, executor->pool_blocks(), CostModel()),
      max_sequence_tokens_(batcher_.max_sequence_tokens()),
      watch_(kStuckAfter),
      reported_(batcher_.stats()),
      emitter_({.stop_at =
                    [this](RequestId request, int32_t tokens) {
                      mailbox_.Post(StopAt{request, tokens});
                    },
                .call_done = hooks_.call_done},
               metrics),
      executor_(std::move(executor)),
      thread_([this] { Run(); }) {}

ReplicaLoop::~ReplicaLoop() {
  mailbox_.Close();
  thread_.join();
}

void ReplicaLoop::Submit(PreparedCall call) { mailbox_.Post(std::move(call)); }
void ReplicaLoop::Cancel(const CallState& call) {
  mailbox_.Post(CancelRequests{call.id, call.call.num_choices});
}

void ReplicaLoop::Run() {
  std::vector<Message> messages;
  while (true) {
    const absl::Time wake = std::min(batcher_.NextWake(), watch_.NextWake());
    if (!mailbox_.Take(&messages, std::max(wake, absl::UnixEpoch()))) return;
    for (Message& message : messages) {
      std::visit([this](auto& value) { OnMessage(std::move(value)); }, message);
    }
    CheckStuck(absl::Now());
    PlanSteps();
    SendEvents();
    ReportStats();
  }
}

void ReplicaLoop::OnMessage(PreparedCall call) {
  const absl::Time now = absl::Now();
  Outcome refusal = Outcome::kDone;
  size_t submitted = 0;
  for (RequestSpec& request : call.requests) {
    refusal = batcher_.On(hexad::Submit{std::move(request)}, now);
    if (refusal != Outcome::kDone) break;
    ++submitted;
  }
  if (refusal == Outcome::kDone) {
    emitter_.Register(std::move(call.state));
    return;
  }
  // All or nothing: the choices that were taken go with the one that was not. Their events are of
  // a call that the emitter does not know, and are dropped there.
  for (size_t i = 0; i < submitted; ++i) {
    batcher_.On(hexad::Cancel{RequestOf(call.state->id, static_cast<int32_t>(i))}, now);
  }
  hooks_.refused(call.state, RefusalStatus(refusal, *call.state, max_sequence_tokens_));
}

void ReplicaLoop::OnMessage(const CancelRequests& cancel) {
  for (int32_t choice = 0; choice < cancel.num_choices; ++choice) {
    batcher_.On(hexad::Cancel{RequestOf(cancel.call, choice)}, absl::Now());
  }
}

void ReplicaLoop::OnMessage(const StopAt& stop) { batcher_.On(stop, absl::Now()); }

void ReplicaLoop::OnMessage(StepMessage message) {
  const absl::Time now = absl::Now();
  if (message.result.ok()) {
    consecutive_failures_ = 0;
    batcher_.On(StepDone{*std::move(message.result)}, now);
  } else {
    log_.Error("step failed",
               {{"worker", name_}, {"step", message.step}, {"cause", message.result.status()}});
    batcher_.On(StepFailed{message.step}, now);
    if (++consecutive_failures_ >= kDeadAfterFailures && !std::exchange(failed_, true)) {
      hooks_.engine_failed(
          absl::StrFormat("worker %s failed %d steps in a row", name_, consecutive_failures_));
    }
  }
  watch_.Ended(now, batcher_.stats().steps_in_flight);
}

void ReplicaLoop::PlanSteps() {
  while (std::optional<StepPlan> plan = batcher_.Plan(absl::Now())) {
    const StepId step = plan->step;
    watch_.Started(absl::Now());
    const StepShape shape = batcher_.stats().last_step;
    metrics_.OnStep(shape.prefill_tokens, shape.decode_rows);
    executor_->Submit(*std::move(plan), [this, step](StepEnd result) {
      mailbox_.Post(StepMessage{step, std::move(result)});
    });
  }
}

void ReplicaLoop::SendEvents() {
  std::vector<TokenEvent> events = batcher_.TakeEvents();
  if (!events.empty()) emitter_.Emit(std::move(events), absl::Now());
}

void ReplicaLoop::CheckStuck(absl::Time now) {
  if (failed_ || !watch_.IsStuck(now)) return;
  failed_ = true;
  hooks_.engine_failed(absl::StrFormat("worker %s has not finished a step for %s", name_,
                                       absl::FormatDuration(kStuckAfter)));
}

void ReplicaLoop::ReportStats() {
  BatcherStats stats = batcher_.stats();
  double usage = 0;  // of the fullest group
  for (size_t i = 0; i < stats.total_blocks.size(); ++i) {
    const double total = std::max<uint32_t>(1, stats.total_blocks[i]);
    usage = std::max(usage, 1.0 - stats.free_blocks[i] / total);
  }
  metrics_.SetQueue(stats.running, stats.waiting, usage);
  if (stats.preemptions > reported_.preemptions) {
    metrics_.OnPreemption(static_cast<int64_t>(stats.preemptions - reported_.preemptions));
  }
  if (stats.prompt_tokens > reported_.prompt_tokens) {
    metrics_.OnPrefixLookup(static_cast<int64_t>(stats.prompt_tokens - reported_.prompt_tokens),
                            static_cast<int64_t>(stats.cached_tokens - reported_.cached_tokens));
  }
  reported_ = std::move(stats);
}

}  // namespace hexad
