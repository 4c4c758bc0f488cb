#pragma once

// What the threads that answer and the I/O thread that writes share: one request's pending output.
// A passive, locked buffer; it knows nothing of sockets.

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/http/http_message.h"
#include "server/http/response_writer.h"

namespace hexad {

class Exchange final {
 public:
  struct Output {
    std::optional<HttpResponse> whole;
    std::optional<StreamHead> head;
    std::vector<std::string> data;
    bool finished = false;  // nothing follows
    bool aborted = false;   // close without an end
    bool overflow = false;  // close: too many pending bytes
  };

  // `wake` is called, on any thread and outside the lock, when there is output to take; at most
  // once between two calls of Take.
  Exchange(std::function<void()> wake, size_t max_pending_bytes);

  // The answering side; see ResponseWriter.
  void Send(HttpResponse response);
  bool BeginStream(StreamHead head);
  bool Write(std::string bytes);
  void Finish();
  void Abort();
  void OnClose(std::function<void(CloseReason)> callback);
  void OnWritersGone();

  // The connection's side.
  Output Take();
  void SetUnsentBytes(size_t bytes);  // taken, but still in the connection's queue
  bool answered() const;              // sent or finished, perhaps not taken yet
  void Close(CloseReason reason);

 private:
  enum class State : uint8_t { kOpen, kStreaming, kAnswered, kClosed };

  // REQUIRES: mutex_ held. True when the caller must call wake_ after unlocking.
  bool NeedsWake();

  const std::function<void()> wake_;
  const size_t max_pending_bytes_;
  mutable std::mutex mutex_;
  State state_ = State::kOpen;
  bool woken_ = false;
  size_t queued_bytes_ = 0;
  size_t unsent_bytes_ = 0;
  Output output_;
  std::optional<CloseReason> closed_;
  std::function<void(CloseReason)> on_close_;
};

}  // namespace hexad
