#include "server/serving/call_state.h"

namespace hexad {

void SetCancelReason(CallState& call, CancelReason reason) {
  CancelReason none = CancelReason::kNone;
  call.cancel.compare_exchange_strong(none, reason);
}

absl::Status CancelStatus(const CallState& call) {
  switch (call.cancel.load()) {
    case CancelReason::kDeadline:
      return absl::DeadlineExceededError(
          "The request did not finish within the server's time limit (limits.request_timeout)");
    case CancelReason::kStopping:
      return absl::UnavailableError("The server is shutting down; send the request again");
    case CancelReason::kNone:
    case CancelReason::kClientGone:
      break;
  }
  return absl::CancelledError("The client is gone");
}

}  // namespace hexad
