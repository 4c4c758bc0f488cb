#pragma once

// Many HTTP transfers in one thread, over libcurl's multi interface. Not thread-safe; callbacks
// run inside Poll and may start and abort transfers.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hexad {

struct HttpCall {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;                  // empty: GET, else POST
  double timeout_seconds = 600;      // for the whole transfer
  // Body bytes as they come, with the answer's status. False ends the transfer (kAborted).
  std::function<bool(long status, std::string_view bytes)> on_body;
};

enum class TransferEnd { kComplete, kNotConnected, kTimedOut, kBroken, kAborted };

struct HttpOutcome {
  TransferEnd end = TransferEnd::kComplete;
  long status = 0;     // 0: no answer came
  std::string detail;  // what went wrong
};

class HttpClient final {
 public:
  using Done = std::function<void(const HttpOutcome&)>;
  // Up to max_connections are kept open and used again.
  explicit HttpClient(long max_connections);
  ~HttpClient();  // ends what is under way; no callback runs any more
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `done` is called once, from Poll.
  uint64_t Start(HttpCall call, Done done);
  // The transfer ends with kAborted in the next Poll. Unknown ids are ignored.
  void Abort(uint64_t id);
  size_t active() const;

  // Moves transfers on, waiting at most `timeout` for something to happen. Returns early when
  // `wake_fd` (-1: none) becomes readable.
  void Poll(std::chrono::milliseconds timeout, int wake_fd = -1);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One transfer from start to end, at most max_bytes of body (kBroken beyond).
struct FetchedBody {
  HttpOutcome outcome;
  std::string body;
};
FetchedBody Fetch(HttpCall call, size_t max_bytes);

}  // namespace hexad
