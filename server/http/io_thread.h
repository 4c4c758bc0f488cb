#pragma once

// One I/O thread and what its connections share. Internal to server/http; includes Asio.

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/http/http_server.h"

namespace hexad {

class Connection;

// What all I/O threads of one server share.
struct HttpShared {
  HttpServerOptions options;
  Router router;

  std::atomic<int64_t> buffered_body_bytes{0};
  std::atomic<uint64_t> accepted{0}, refused{0}, requests{0}, clients_gone{0}, slow_readers{0};

  std::mutex mutex;
  std::condition_variable all_closed;
  int64_t open_connections = 0;  // guarded by mutex
};

// Connections of one thread that have output to take. Threads that answer may outlive the server,
// so they hold this and a connection's number, never the connection.
class Outbox final {
 public:
  explicit Outbox(boost::asio::io_context* context, std::function<void()> drain)
      : context_(context), drain_(std::move(drain)) {}

  void Notify(uint64_t connection);  // any thread; one wake-up of the I/O thread for a whole batch
  std::vector<uint64_t> Take();
  void Detach();  // the io_context is about to go

 private:
  std::mutex mutex_;
  boost::asio::io_context* context_;
  std::function<void()> drain_;
  std::vector<uint64_t> waiting_;
};

// All but `context`, `outbox` and the constructor's work belongs to the thread itself.
struct IoThread {
  explicit IoThread(HttpShared* shared);
  ~IoThread();

  void DrainOutbox();
  void BeginDrain();  // idle connections close, answers say connection: close
  void EndStreams();  // the deadline: streams are told, the rest is refused
  void CloseAll();
  std::string NewRequestId();

  HttpShared* const shared;
  boost::asio::io_context context{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work;
  std::shared_ptr<Outbox> outbox;
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections;
  uint64_t next_connection = 1;
  bool draining = false;
  std::array<char, 64 * 1024> scratch;  // reads land here, so that idle connections own no buffer
  std::mt19937_64 random;
  std::thread thread;
};

}  // namespace hexad
