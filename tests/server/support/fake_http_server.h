#pragma once

// A small HTTP/1.1 server for tests of clients, over plain sockets: a thread a connection, one
// request a connection, and a handler that may answer well or badly (cut transfers, resets,
// silence). Port 0 on loopback.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hexad {

struct FakeRequest {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string Header(const std::string& name) const;
};

using FakeHeaders = std::vector<std::pair<std::string, std::string>>;

class FakeConnection final {
 public:
  FakeConnection(int fd, int stop_fd) : fd_(fd), stop_fd_(stop_fd) {}
  // False once the peer is gone.
  bool Send(std::string_view bytes);
  // A whole answer with Content-Length.
  void Respond(int status, const FakeHeaders& headers, std::string_view body);
  // The head alone; the body is up to the caller.
  void SendHead(int status, const FakeHeaders& headers);
  // Blocks until the peer closes or the server stops. True when the peer closed.
  bool WaitForPeerToLeave();
  // Closes with a reset in place of an orderly end.
  void Reset();

 private:
  int fd_;
  int stop_fd_;
};

class FakeHttpServer final {
 public:
  using Handler = std::function<void(const FakeRequest&, FakeConnection&)>;
  explicit FakeHttpServer(Handler handler);
  ~FakeHttpServer();
  FakeHttpServer(const FakeHttpServer&) = delete;
  FakeHttpServer& operator=(const FakeHttpServer&) = delete;

  int port() const { return port_; }
  std::string Url(std::string_view path = "") const;
  std::vector<FakeRequest> Requests() const;

 private:
  void Accept();
  void Serve(int fd);

  Handler handler_;
  int listen_fd_ = -1;
  int stop_read_fd_ = -1;
  int stop_write_fd_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<FakeRequest> requests_;
  std::vector<std::thread> connections_;  // only touched by the acceptor until it ended
  std::thread acceptor_;
};

// A loopback port on which nothing listens.
int ClosedPort();

}  // namespace hexad
