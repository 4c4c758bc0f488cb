#pragma once

// The gRPC front end: hexad.v1.Inference, grpc.health.v1.Health and reflection on one port.
// Callback API: no thread waits for a stream. A stream's unsent bytes are bounded; a reader slower
// than that is cancelled. No gRPC type leaves this folder.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/auth.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/serving/serving.h"

namespace hexad {

struct GrpcServerOptions {
  std::string address = "127.0.0.1:8001";         // port 0: a free one, see GrpcServer::port()
  int64_t max_message_bytes = int64_t{16} << 20;  // of a request
  int64_t max_pending_bytes = 1 << 20;            // unsent bytes of one stream
};

class GrpcServer {
 public:
  // The references outlive the server. Unavailable when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                           Serving& serving,
                                                           const Authenticator& authenticator,
                                                           Logger& log, Metrics& metrics);
  virtual ~GrpcServer() = default;  // Shutdown(InfinitePast) if it was not

  virtual int port() const = 0;

  // What grpc.health.v1 answers, for "" and hexad.v1.Inference. Not serving until told.
  virtual void SetServing(bool serving) = 0;

  // Not serving; no new calls; waits for running ones until `deadline`, then cancels them.
  // Blocks. Idempotent.
  virtual void Shutdown(absl::Time deadline) = 0;
};

// Sends gRPC's own messages to `log`, until DropGrpcLog: gRPC has threads that outlive every
// server, so call that before `log` goes. Process-wide.
void RedirectGrpcLog(Logger& log);
// gRPC's messages go nowhere; when this returns none is being written to the logger.
void DropGrpcLog();

}  // namespace hexad
