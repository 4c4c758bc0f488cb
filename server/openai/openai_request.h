#pragma once

// Bodies of POST /v1/chat/completions and /v1/completions as a GenerateCall. Wire types end here.
//
// Explicit nulls count as absent, unknown fields are ignored, of a field given twice the last
// holds. What would change the answer but is not supported is refused by name, never dropped
// silently. All errors are InvalidArgument with the field as param (server/status.h).

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/http_message.h"
#include "server/serving/generate.h"

namespace hexad {

struct RequestLimits {
  int32_t max_choices = 8;  // n; OpenAI allows 128
  int32_t max_messages = 16384;
  int32_t max_logit_bias = 1024;
};

struct OpenAiRequest {
  GenerateCall call;  // all but tenant and request_id
  bool stream = false;
  bool include_usage = false;
  bool return_token_ids = false;  // vLLM's: the ids of the answer's tokens beside its text
};

absl::StatusOr<OpenAiRequest> ParseChatRequest(std::string body, const RequestLimits& limits);
absl::StatusOr<OpenAiRequest> ParseCompletionRequest(std::string body, const RequestLimits& limits);

// x-hexad-workflow, -call, -parents (comma-separated) and -agent. Where any is present they replace
// what the body's metadata.hexad_* said.
absl::Status ReadWorkflowHeaders(const HttpHeaders& headers, WorkflowHints* hints);

}  // namespace hexad
