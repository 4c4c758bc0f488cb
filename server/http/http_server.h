#pragma once

// An HTTP/1.1 server for many long streams: one io_context and thread each for `io_threads`, a
// state machine per connection, answers from any thread. Boost.Beast parses and Boost.Asio waits;
// neither shows through this interface.
//
// Handlers run on I/O threads and must not block. Whatever a client sends is answered or closed,
// and never disturbs another connection. TLS is left to a proxy.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"
#include "server/http/router.h"

namespace hexad {

struct HttpLimits {
  size_t max_header_bytes = 64 * 1024;
  size_t max_body_bytes = 32 * 1024 * 1024;
  size_t max_buffered_body_bytes = 512 * 1024 * 1024;  // of all connections; above: 503
  absl::Duration header_timeout = absl::Seconds(15);   // first to last byte of a header: 408
  absl::Duration body_timeout = absl::Seconds(120);    // the whole body: 408
  absl::Duration idle_timeout = absl::Seconds(75);     // open without a request: closed
  absl::Duration write_timeout = absl::Seconds(60);    // no byte taken by the client: closed
  int max_connections = 10000;                         // above: 503 and closed
  size_t max_pending_bytes = 1024 * 1024;  // of one stream; above: a slow reader, closed
};

// One answered request, for logs and metrics.
struct HttpAccess {
  std::string method;
  std::string path;
  std::string route;  // the pattern; empty when none matched
  std::string peer;
  std::string request_id;
  int status = 0;  // 499: the client went before an answer
  uint64_t response_bytes = 0;
  absl::Duration duration;  // from the first byte of the request
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 8000;  // 0: any free one, see port()
  int io_threads = 2;
  HttpLimits limits;
  std::function<void(const HttpAccess&)> on_access;  // on an I/O thread; must not block
};

struct HttpStats {
  int64_t open_connections = 0;
  uint64_t accepted_connections = 0;
  uint64_t refused_connections = 0;  // over max_connections
  uint64_t requests = 0;
  uint64_t clients_gone = 0;  // before their answer ended
  uint64_t slow_readers = 0;
};

class HttpServer final {
 public:
  // Listens and serves at once. A port that is taken is AlreadyExists, with the remedy.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                           Router router);
  ~HttpServer();  // Stop(zero)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  HttpStats stats() const;

  // Takes no more connections, closes idle ones, lets running requests end for up to `drain`; then
  // streams get their stop_bytes, others a 503. Returns when all are closed and the threads have
  // ended. Not from an I/O thread; a second call waits for nothing.
  void Stop(absl::Duration drain);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace hexad
