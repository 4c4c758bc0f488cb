#pragma once

// A server on a free port whose streams the test holds in its hand.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_server.h"
#include "tests/server/http/raw_client.h"

namespace hexad {

// Values from I/O threads, waited for without a poll.
template <typename T>
class Inbox final {
 public:
  void Put(T value) {
    std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  // nullopt when nothing comes for a long time.
  std::optional<T> Take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !values_.empty(); })) {
      return std::nullopt;
    }
    T value = std::move(values_.front());
    values_.erase(values_.begin());
    return value;
  }
  bool WaitForCount(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return values_.size() >= count; });
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

struct HttpFixture {
  Inbox<ResponseWriter> streams;  // of GET /stream, begun
  Inbox<ResponseWriter> held;     // of POST /hold, not answered
  Inbox<CloseReason> closes;      // of both
  Inbox<HttpAccess> accesses;
  std::unique_ptr<HttpServer> server;

  explicit HttpFixture(HttpServerOptions options = {}, StreamHead head = {}) {
    Router router;
    router.Add({.method = "GET", .pattern = "/hello", .handler = [](HttpRequest, ResponseWriter w) {
                  w.Send({.content_type = "text/plain", .body = "hello"});
                }});
    router.Add({.method = "POST",
                .pattern = "/echo",
                .handler =
                    [](HttpRequest request, ResponseWriter w) {
                      w.Send({.content_type = "text/plain", .body = std::move(request.body)});
                    },
                .json_body = true});
    router.Add({.method = "GET",
                .pattern = "/item/{id}",
                .handler = [](HttpRequest request, ResponseWriter w) {
                  w.Send({.body = request.parameter + "|" + request.query});
                }});
    router.Add({.method = "GET",
                .pattern = "/stream",
                .handler = [this, head](HttpRequest, ResponseWriter w) {
                  w.BeginStream(head);
                  w.OnClose([this](CloseReason reason) { closes.Put(reason); });
                  streams.Put(std::move(w));
                }});
    router.Add(
        {.method = "POST", .pattern = "/hold", .handler = [this](HttpRequest, ResponseWriter w) {
           w.OnClose([this](CloseReason reason) { closes.Put(reason); });
           held.Put(std::move(w));
         }});
    router.Add(
        {.method = "GET", .pattern = "/lost", .handler = [](HttpRequest, ResponseWriter) {}});
    options.port = 0;
    options.on_access = [this](const HttpAccess& access) { accesses.Put(access); };
    server = *HttpServer::Start(std::move(options), std::move(router));
  }
  ~HttpFixture() { server->Stop(absl::ZeroDuration()); }

  RawClient Client() { return RawClient(server->port()); }
};

}  // namespace hexad
