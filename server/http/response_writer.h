#pragma once

// The answer to one HTTP request, from any thread.
//
// A copy is a reference to the same answer; all methods are thread-safe and never block. Exactly
// one of Send and BeginStream counts, the first; later calls do nothing. When the last copy goes
// before an answer was finished, the client gets a 500 or, inside a stream, a closed connection.
// Writers may outlive the server.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http/http_message.h"

namespace hexad {

class Exchange;

enum class CloseReason : uint8_t {
  kClientGone,      // the client closed or reset its connection, or closed its sending side
  kSlowReader,      // it read too slowly: too many pending bytes, or none taken for too long
  kServerStopping,  // the drain deadline passed
};

class ResponseWriter final {
 public:
  explicit ResponseWriter(std::shared_ptr<Exchange> exchange);

  void Send(HttpResponse response);

  // Sends the status line and headers of a 200 whose body follows by Write. False: already answered
  // or closed.
  bool BeginStream(StreamHead head);
  // Queues bytes; what is queued when the I/O thread comes by leaves as one chunk. False when the
  // client is gone or just exceeded the pending bytes allowed.
  bool Write(std::string bytes);
  void Finish();
  // Closes the connection without the end of the stream, so that the client sees it was cut.
  void Abort();

  // `callback` runs once, on the I/O thread, when the exchange ends before Send or Finish; at once
  // and on this thread when it has already. It is dropped unused after an answer. One per answer.
  void OnClose(std::function<void(CloseReason)> callback);

 private:
  struct Handle;
  std::shared_ptr<Handle> handle_;
};

}  // namespace hexad
