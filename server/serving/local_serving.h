#pragma once

// Serving by replicas in this process: call table, tokeniser threads, planner loop, replicas.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/executor.h"
#include "scheduler/batch/batcher.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/serving/call_state.h"
#include "server/serving/mailbox.h"
#include "server/serving/planner_loop.h"
#include "server/serving/quota.h"
#include "server/serving/replica_loop.h"
#include "server/serving/serving.h"

namespace hexad {

struct ReplicaConfig {
  std::string name;
  std::string model;  // of one of the loaded models
  std::unique_ptr<Executor> executor;
  BatcherConfig batcher;
};

struct LocalServingOptions {
  std::string planner = "wf_fcfs";
  int32_t tokenizer_threads = 2;
  int32_t max_live_calls = 2048;  // more are refused as overload
  absl::Duration request_timeout = absl::Minutes(10);
  std::string server_secret;  // at least 16 random bytes
  TenantQuotas::Limits quotas;
  std::function<void(const std::string& reason)> on_failed;  // the engine is dead; once
};

class LocalServing final : public Serving {
 public:
  // InvalidArgument when a replica names an unknown model or the planner policy is unknown.
  static absl::StatusOr<std::unique_ptr<LocalServing>> Create(
      std::vector<std::unique_ptr<LoadedModel>> models, std::vector<ReplicaConfig> replicas,
      LocalServingOptions options, Logger& log, Metrics& metrics);
  ~LocalServing() override;  // drains at once

  std::vector<ModelInfo> ListModels() const override;
  CallId Start(GenerateCall call, std::shared_ptr<TokenSink> sink) override;
  void Cancel(CallId call) override;
  ServingState state() const override { return state_.load(); }

  void SetQuotas(TenantQuotas::Limits limits) { quotas_.Replace(std::move(limits)); }

  // New calls are refused; waits until the running ones ended or `deadline`, then ends the rest
  // with an error. Blocks; idempotent.
  void Drain(absl::Time deadline);

 private:
  LocalServing(std::vector<std::unique_ptr<LoadedModel>> models, LocalServingOptions options,
               std::unique_ptr<PlannerPolicy> policy, Logger& log);
  void TokenizeCalls();
  void PrepareCall(std::shared_ptr<CallState> call);
  void Refuse(const std::shared_ptr<CallState>& call, const absl::Status& status);
  void Finish(const CallOutcome& outcome);
  void Forget(CallId call);
  void CancelAs(CallId call, CancelReason reason);
  uint64_t RandomSeed();

  const std::vector<std::unique_ptr<LoadedModel>> models_;
  const LocalServingOptions options_;
  Logger& log_;
  std::atomic<ServingState> state_ = ServingState::kStarting;
  std::atomic<uint64_t> next_call_ = 1;

  TenantQuotas quotas_;
  std::mutex mutex_;  // guards the two below
  absl::flat_hash_map<CallId, std::shared_ptr<CallState>> calls_;
  std::condition_variable idle_;

  PlannerLoop planner_;
  std::vector<std::unique_ptr<ReplicaLoop>> replicas_;
  Mailbox<std::shared_ptr<CallState>> to_tokenize_;
  std::vector<std::thread> tokenizers_;
};

}  // namespace hexad
