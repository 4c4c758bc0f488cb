#pragma once

// The middle of the daemon: takes calls from the front ends, renders and tokenises them, has the
// planner place them and the replicas compute them, and streams the text back.
//
// Thread-safe. Built once from the configuration by main.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/step/ids.h"
#include "server/serving/generate.h"

namespace hexad {

struct ModelInfo {
  std::string name;
  int64_t created_unix = 0;
  int32_t max_context_tokens = 0;
};

enum class ServingState : uint8_t { kStarting, kReady, kDraining, kFailed };

class Serving {
 public:
  virtual ~Serving() = default;

  virtual std::vector<ModelInfo> ListModels() const = 0;

  // Everything after this comes through `sink`, errors too; `sink` is kept until its OnEnd.
  virtual CallId Start(GenerateCall call, std::shared_ptr<TokenSink> sink) = 0;

  // The client is gone: the call ends within a step and its KV is released. OnEnd still comes, with
  // Cancelled. Unknown or ended ids are ignored.
  virtual void Cancel(CallId call) = 0;

  virtual ServingState state() const = 0;
};

}  // namespace hexad
