#pragma once

// One generation as every front end asks for it, and how its answer comes back. Wire types end
// before this file: HTTP and gRPC both translate into a GenerateCall.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "kvcache/core/types.h"
#include "scheduler/step/request.h"

namespace hexad {

struct ChatMessage {
  std::string role;
  std::string content;
  std::string name;  // empty when absent
};

// What the client said of the workflow this call belongs to, and which signal said it.
struct WorkflowHints {
  std::string workflow, call, agent, source;
  std::vector<std::string> parents;
};

struct GenerateCall {
  std::string request_id;  // the client's or ours; for logs, never a key
  std::string tenant;      // from the API key only
  std::string model;
  std::variant<std::string, std::vector<ChatMessage>, std::vector<TokenId>> input;
  int32_t num_choices = 1;
  SamplingParams sampling;
  bool has_seed = false;        // without one every choice gets a random seed
  int32_t max_new_tokens = -1;  // -1: up to the end of the context
  int32_t min_new_tokens = 0;
  bool ignore_end_of_sequence = false;
  std::vector<std::string> stop_strings;  // not returned; may span tokens
  std::vector<TokenId> stop_tokens;
  WorkflowHints workflow;
};

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;
  int32_t completion_tokens = 0;  // all choices
};

struct TextLogprob {
  std::string bytes;  // of the token; not always valid UTF-8 by itself
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top;
};

// Whole UTF-8 characters that can no longer be part of a stop string.
struct TextDelta {
  std::string text;
  std::vector<TokenId> tokens;        // whose text has begun to appear with this delta
  std::vector<TextLogprob> logprobs;  // one per token when asked for
};

// Where an answer goes. Calls come from one thread at a time, in the order
// OnAccepted? (OnDelta | OnFinish)* OnEnd, and never block. OnEnd is called exactly once, last.
// An error before OnAccepted was refused whole: the front end may still choose its status code.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void OnAccepted(int32_t prompt_tokens) = 0;
  virtual void OnDelta(int32_t choice, TextDelta delta) = 0;
  virtual void OnFinish(int32_t choice, FinishReason reason) = 0;
  virtual void OnEnd(const absl::Status& status, const Usage& usage) = 0;
};

}  // namespace hexad
