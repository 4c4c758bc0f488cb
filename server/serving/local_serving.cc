#include "server/serving/local_serving.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "scheduler/planner/policies/registry.h"
#include "server/serving/prepare.h"
#include "server/status.h"

namespace hexad {

absl::StatusOr<std::unique_ptr<LocalServing>> LocalServing::Create(
    std::vector<std::unique_ptr<LoadedModel>> models, std::vector<ReplicaConfig> replicas,
    LocalServingOptions options, Logger& log, Metrics& metrics) {
  auto policy = MakePlannerPolicy(options.planner);
  if (policy == nullptr) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "policy.planner.kind is '%s'; there are: %s", options.planner,
        absl::StrJoin(PlannerPolicyNames(), ", ",
                      [](std::string* out, std::string_view name) { out->append(name); })));
  }
  std::unique_ptr<LocalServing> serving(
      new LocalServing(std::move(models), std::move(options), std::move(policy), log));
  uint32_t next_worker = 1;
  for (ReplicaConfig& replica : replicas) {
    const auto model = std::find_if(serving->models_.begin(), serving->models_.end(),
                                    [&](const auto& m) { return m->name == replica.model; });
    if (model == serving->models_.end()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "worker %s serves the model '%s', which is not in models", replica.name, replica.model));
    }
    const Executor& executor = *replica.executor;
    const std::vector<uint32_t>& blocks = executor.pool_blocks();
    const int64_t block_tokens = executor.shape().kv.block_tokens;
    ModelMetricsOptions metric_options;
    metric_options.engine = std::to_string(next_worker - 1);
    metric_options.max_context_tokens = (*model)->max_context_tokens;
    metric_options.block_tokens = block_tokens;
    metric_options.num_blocks = blocks.empty() ? 0 : blocks.front();
    ModelMetrics& model_metrics = metrics.Model(replica.model, metric_options);

    WorkerUp up{.worker = WorkerId{next_worker++},
                .name = replica.name,
                .model = replica.model,
                .role = WorkerRole::kBoth,
                .max_running = replica.batcher.max_running,
                .kv_capacity_tokens = metric_options.num_blocks * block_tokens};
    LocalServing* self = serving.get();
    serving->replicas_.push_back(std::make_unique<ReplicaLoop>(
        replica.name, std::move(replica.batcher), std::move(replica.executor),
        ReplicaLoop::Hooks{
            .call_done = [self](const CallOutcome& outcome) { self->Finish(outcome); },
            .refused =
                [self](const std::shared_ptr<CallState>& call, const absl::Status& status) {
                  self->planner_.Done({.call = call->id, .reason = FinishReason::kFailed});
                  self->Refuse(call, status);
                },
            .engine_failed =
                [self](const std::string& reason) {
                  self->state_ = ServingState::kFailed;
                  self->log_.Error("engine failed", {{"reason", reason}});
                  if (self->options_.on_failed) self->options_.on_failed(reason);
                }},
        model_metrics, log));
    serving->planner_.AddReplica(up, *serving->replicas_.back());
  }
  for (int32_t i = 0; i < std::max(1, serving->options_.tokenizer_threads); ++i) {
    serving->tokenizers_.emplace_back([self = serving.get()] { self->TokenizeCalls(); });
  }
  serving->state_ = ServingState::kReady;
  return serving;
}

LocalServing::LocalServing(std::vector<std::unique_ptr<LoadedModel>> models,
                           LocalServingOptions options, std::unique_ptr<PlannerPolicy> policy,
                           Logger& log)
    : models_(std::move(models)),
      options_(std::move(options)),
      log_(log),
      quotas_(options_.quotas),
      planner_(std::move(policy),
               {.refused = [this](const std::shared_ptr<CallState>& call,
                                  const absl::Status& status) { Refuse(call, status); }},
               log) {}

LocalServing::~LocalServing() {
  Drain(absl::InfinitePast());
  to_tokenize_.Close();
  for (std::thread& thread : tokenizers_) thread.join();
  planner_.Stop();  // it may still know a replica by a message about an ended call
}

std::vector<ModelInfo> LocalServing::ListModels() const {
  std::vector<ModelInfo> infos;
  for (const auto& model : models_) {
    infos.push_back({model->name, model->created_unix, model->max_context_tokens});
  }
  return infos;
}

CallId LocalServing::Start(GenerateCall call, std::shared_ptr<TokenSink> sink) {
  auto state = std::make_shared<CallState>();
  state->id = CallId{next_call_++};
  state->call = std::move(call);
  state->sink = std::move(sink);
  state->arrival = absl::Now();
  state->deadline = state->arrival + options_.request_timeout;
  absl::Status refusal = quotas_.Admit(state->call.tenant, state->arrival);
  if (refusal.ok()) {
    const std::lock_guard lock(mutex_);
    if (state_ == ServingState::kDraining) {
      refusal = absl::UnavailableError("The server is shutting down; send the request again");
    } else if (state_ != ServingState::kReady) {
      refusal = absl::UnavailableError("The engine does not answer");
    } else if (static_cast<int64_t>(calls_.size()) >= options_.max_live_calls) {
      refusal =
          WithRetryAfter(absl::UnavailableError(absl::StrFormat(
                             "The server has %d requests already; try again later", calls_.size())),
                         1);
    } else {
      calls_.emplace(state->id, state);
    }
  }
  if (!refusal.ok()) {
    state->sink->OnEnd(refusal, {});
    return state->id;
  }
  const CallId id = state->id;
  to_tokenize_.Post(std::move(state));
  return id;
}

void LocalServing::Cancel(CallId call) { CancelAs(call, CancelReason::kClientGone); }

void LocalServing::CancelAs(CallId call, CancelReason reason) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = calls_.find(call);
    if (it == calls_.end()) return;
    SetCancelReason(*it->second, reason);
  }
  planner_.Cancel(call);
}

void LocalServing::Drain(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  if (state_ == ServingState::kReady || state_ == ServingState::kStarting) {
    state_ = ServingState::kDraining;
  }
  const auto idle = [this] { return calls_.empty(); };
  if (deadline > absl::Now()) idle_.wait_until(lock, absl::ToChronoTime(deadline), idle);
  std::vector<CallId> rest;
  for (const auto& [id, call] : calls_) rest.push_back(id);
  lock.unlock();
  for (const CallId call : rest) CancelAs(call, CancelReason::kStopping);
  lock.lock();
  idle_.wait(lock, idle);
}

void LocalServing::TokenizeCalls() {
  std::vector<std::shared_ptr<CallState>> calls;
  while (to_tokenize_.TakeOne(&calls)) {
    for (std::shared_ptr<CallState>& call : calls) PrepareCall(std::move(call));
  }
}

void LocalServing::PrepareCall(std::shared_ptr<CallState> call) {
  if (call->cancel.load() != CancelReason::kNone) {
    Refuse(call, CancelStatus(*call));
    return;
  }
  PrepareOptions options;
  options.server_secret = options_.server_secret;
  options.random_seed = RandomSeed();
  auto requests = Prepare(*call, models_, options, absl::Now());
  if (!requests.ok()) {
    Refuse(call, requests.status());
    return;
  }
  planner_.Arrive({std::move(call), *std::move(requests)});
}

void LocalServing::Refuse(const std::shared_ptr<CallState>& call, const absl::Status& status) {
  log_.Debug("call refused",
             {{"call", call->id}, {"request", call->call.request_id}, {"status", status}});
  call->sink->OnEnd(status, {});
  Forget(call->id);
}

void LocalServing::Finish(const CallOutcome& outcome) {
  quotas_.Charge(outcome.tenant, outcome.uncached_tokens, absl::Now());
  planner_.Done(outcome);
  Forget(outcome.call);
}

void LocalServing::Forget(CallId call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
  if (calls_.empty()) idle_.notify_all();
}

uint64_t LocalServing::RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace hexad
