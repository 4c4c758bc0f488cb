#pragma once

// The OpenAI API and the operational endpoints, as routes of the HTTP server:
// POST /v1/chat/completions, POST /v1/completions, GET /v1/models[/{id}],
// GET /health /live /ready /version /metrics.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/router.h"
#include "server/openai/openai_request.h"
#include "server/serving/serving.h"

namespace hexad {

struct OpenAiOptions {
  // The tenant of an Authorization header, which is empty when there was none. Called on I/O
  // threads: it must not block. Everything under /v1 asks it.
  std::function<absl::StatusOr<std::string>(std::string_view authorization)> authenticate;
  // The body of /metrics in the Prometheus text format. Empty: there is no /metrics.
  std::function<std::string()> metrics;
  bool metrics_need_key = false;
  RequestLimits limits;
  absl::Duration stream_keep_alive = absl::Seconds(15);  // ": ping" when nothing else was sent
  std::string version;
  std::string system_fingerprint;     // empty: left out of answers
  std::function<int64_t()> now_unix;  // seconds; empty: the clock
};

// `serving` must outlive the server that the router is given to.
void AddOpenAiRoutes(Serving* serving, OpenAiOptions options, Router* router);

}  // namespace hexad
