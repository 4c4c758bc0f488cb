#pragma once

// One Generate call: a write reactor of gRPC and the sink of the answer, with a bounded queue of
// messages between them, because a second StartWrite before OnWriteDone aborts the process.
//
// Included by the two files of this folder that speak gRPC.

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hexad/v1/inference.pb.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/serving/serving.h"

namespace hexad {

// What every stream of a server uses; outlives them.
struct StreamContext {
  Serving& serving;
  Logger& log;
  Metrics& metrics;
  size_t max_pending_bytes;
};

// `status` for the wire, with the field at fault and OpenAI's code as trailing metadata. Like HTTP,
// what is our fault does not show its message.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase* context);

// Thread-safe. Keeps itself alive until gRPC is done with it; Serving keeps it until OnEnd.
class GenerateStream final : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                             public TokenSink {
 public:
  static std::shared_ptr<GenerateStream> Create(const StreamContext& shared,
                                                grpc::CallbackServerContext* context);

  // Starts the call; everything after it comes through the two interfaces.
  void Run(GenerateCall call);
  // Answers with an error instead.
  void Refuse(const absl::Status& status);

  // Of TokenSink.
  void OnAccepted(int32_t prompt_tokens) override;
  void OnDelta(int32_t choice, TextDelta delta) override;
  void OnFinish(int32_t choice, FinishReason reason) override;
  void OnEnd(const absl::Status& status, const Usage& usage) override;

  // Of the reactor.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  GenerateStream(const StreamContext& shared, grpc::CallbackServerContext* context)
      : shared_(shared), context_(context) {}

  void Push(v1::GenerateResponse message);        // takes mutex_
  void PushLocked(v1::GenerateResponse message);  // needs it, as the next four do
  bool MergeLocked(const v1::GenerateResponse& message, size_t bytes);
  void EndLocked(absl::Status status);
  void StartNextLocked();
  // The call to cancel in Serving, once, after the lock is gone.
  std::optional<CallId> TakeCancelLocked();
  void Report();  // to log and metrics, when all is over

  const StreamContext& shared_;
  grpc::CallbackServerContext* const context_;  // valid until OnDone
  std::shared_ptr<GenerateStream> self_;        // until OnDone

  std::mutex mutex_;
  struct Pending {
    v1::GenerateResponse message;
    size_t bytes = 0;
  };
  std::deque<Pending> queue_;  // the front one is being written when writing_
  size_t queued_bytes_ = 0;    // of all in queue_
  bool writing_ = false;
  bool ended_ = false;      // no more messages come; status_ is final
  bool finished_ = false;   // Finish was called
  bool cancelled_ = false;  // Serving is to be told, or was
  bool client_gone_ = false;
  std::optional<CallId> call_;
  absl::Status status_;
  std::string request_id_;
  std::string tenant_;
  std::string model_;
  Usage usage_;
};

}  // namespace hexad
