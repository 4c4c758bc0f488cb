#pragma once

// Turns a replica's tokens into text for the clients, on a thread of its own: detokenises, applies
// stop strings, joins the choices of a call, and ends calls.
//
// The emitter alone decides where text ends. Having found a stop string it tells the batcher the
// number of output tokens that count (StopAt); tokens past it are neither emitted nor counted.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/step/request.h"
#include "server/metrics/metrics.h"
#include "server/serving/call_state.h"
#include "server/serving/mailbox.h"
#include "server/serving/stop_matcher.h"

namespace hexad {

struct CallOutcome {
  CallId call{};
  FinishReason reason{};
  int32_t output_tokens = 0;
  std::string tenant;
  int64_t uncached_tokens = 0;  // computed for it: prompt tokens not in the cache, and output
};

class Emitter final {
 public:
  struct Hooks {
    std::function<void(RequestId, int32_t output_tokens)> stop_at;  // to the replica
    std::function<void(const CallOutcome&)> call_done;              // to planner and call table
  };
  Emitter(Hooks hooks, ModelMetrics& metrics);
  ~Emitter();  // after every call registered has ended

  // Any thread; in the order of the posts.
  void Register(std::shared_ptr<CallState> call);
  void Emit(std::vector<TokenEvent> events, absl::Time now);

 private:
  struct Choice {
    Choice(const CallState& call, std::vector<std::string> stops);
    IncrementalDecoder decoder;
    StopMatcher stops;
    bool stopped = false;  // by a stop string
    bool finished = false;
    int32_t output_tokens = 0;
    TextDelta pending;  // tokens whose text is still held back
    absl::Time first_token, last_token;
  };
  struct Call {
    std::shared_ptr<CallState> state;
    std::vector<std::unique_ptr<Choice>> choices;
    int32_t live_choices = 0;
    Usage usage;
    FinishReason worst = FinishReason::kStop;
  };
  struct Batch {
    std::vector<TokenEvent> events;
    absl::Time now;
  };
  using Message = std::variant<std::shared_ptr<CallState>, Batch>;

  void Run();
  void Accept(std::shared_ptr<CallState> state);
  void OnEvent(const TokenEvent& event, absl::Time now);
  void OnTokens(Call& call, const TokenEvent& event, absl::Time now);
  void OnFinished(Call& call, const TokenEvent& event, absl::Time now);
  void EndCall(Call& call);
  void Send(Call& call, int32_t index, std::string text);

  const Hooks hooks_;
  ModelMetrics& metrics_;
  absl::flat_hash_map<CallId, Call> calls_;
  Mailbox<Message> mailbox_;
  std::thread thread_;
};

}  // namespace hexad
