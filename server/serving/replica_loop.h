#pragma once

// The thread of one replica: feeds its batcher, submits plans to its executor, hands tokens to its
// emitter. Also notices when the engine is stuck or dead.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/executor.h"
#include "scheduler/batch/batcher.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/serving/call_state.h"
#include "server/serving/emitter.h"
#include "server/serving/mailbox.h"
#include "server/serving/planner_loop.h"
#include "server/serving/step_watch.h"

namespace hexad {

class ReplicaLoop final {
 public:
  struct Hooks {
    std::function<void(const CallOutcome&)> call_done;
    // The batcher refused the call before any of it ran.
    std::function<void(const std::shared_ptr<CallState>&, const absl::Status&)> refused;
    std::function<void(const std::string& reason)> engine_failed;  // once
  };
  ReplicaLoop(std::string name, BatcherConfig config, std::unique_ptr<Executor> executor,
              Hooks hooks, ModelMetrics& metrics, Logger& log);
  ~ReplicaLoop();  // REQUIRES: every submitted call has ended

  // Any thread.
  void Submit(PreparedCall call);
  void Cancel(const CallState& call);

  int32_t max_sequence_tokens() const { return max_sequence_tokens_; }

 private:
  struct CancelRequests {
    CallId call;
    int32_t num_choices;
  };
  using StepEnd = absl::StatusOr<StepResult>;
  struct StepMessage {
    StepId step;
    StepEnd result;
  };
  using Message = std::variant<PreparedCall, CancelRequests, StopAt, StepMessage>;

  void Run();
  void OnMessage(PreparedCall call);
  void OnMessage(const CancelRequests& cancel);
  void OnMessage(const StopAt& stop);
  void OnMessage(StepMessage message);
  void PlanSteps();
  void SendEvents();
  void CheckStuck(absl::Time now);
  void ReportStats();

  const std::string name_;
  const Hooks hooks_;
  ModelMetrics& metrics_;
  Logger& log_;
  Batcher batcher_;
  int32_t max_sequence_tokens_ = 0;
  int32_t consecutive_failures_ = 0;
  bool failed_ = false;
  StepWatch watch_;
  BatcherStats reported_;

  Mailbox<Message> mailbox_;
  Emitter emitter_;
  std::unique_ptr<Executor> executor_;  // its threads post to the mailbox: destroyed first
  std::thread thread_;
};

}  // namespace hexad
