#pragma once

// One call on its way through the daemon. Handed from thread to thread by mailboxes; only
// `cancel` is looked at by others than the present holder.

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/step/ids.h"
#include "server/serving/generate.h"
#include "server/serving/loaded_model.h"

namespace hexad {

// Why a call is ended early; the first reason stays.
enum class CancelReason : uint8_t { kNone, kClientGone, kDeadline, kStopping };

struct CallState {
  CallId id{};
  GenerateCall call;
  std::shared_ptr<TokenSink> sink;
  absl::Time arrival;
  absl::Time deadline = absl::InfiniteFuture();
  std::atomic<CancelReason> cancel = CancelReason::kNone;
  // Set once the call is validated and tokenised.
  const LoadedModel* model = nullptr;
  int32_t prompt_tokens = 0;
  int32_t max_new_tokens = 0;
};

// Sets the reason unless there is one already.
void SetCancelReason(CallState& call, CancelReason reason);
// What the client is told of it. REQUIRES: a reason was set.
absl::Status CancelStatus(const CallState& call);

// Choices of a call are requests of their own: up to kMaxChoices of them.
inline constexpr uint64_t kMaxChoices = 128;
inline RequestId RequestOf(CallId call, int32_t choice) {
  return RequestId{static_cast<uint64_t>(call) * kMaxChoices + static_cast<uint64_t>(choice)};
}
inline CallId CallOf(RequestId request) {
  return CallId{static_cast<uint64_t>(request) / kMaxChoices};
}
inline int32_t ChoiceOf(RequestId request) {
  return static_cast<int32_t>(static_cast<uint64_t>(request) % kMaxChoices);
}

}  // namespace hexad
