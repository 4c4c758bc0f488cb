#include "tests/server/support/fake_http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace hexad {
namespace {

int Listen(int* port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  *port = ntohs(address.sin_port);
  return fd;
}

// False when the peer left or the server stops before the whole request is there.
bool ReadRequest(int fd, int stop_fd, FakeRequest* request) {
  std::string text;
  size_t head_end = std::string::npos;
  size_t length = 0;
  while (head_end == std::string::npos || text.size() < head_end + 4 + length) {
    pollfd events[2] = {{fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 || events[1].revents != 0) return false;
    char buffer[16384];
    const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) return false;
    text.append(buffer, static_cast<size_t>(got));
    if (head_end != std::string::npos) continue;
    head_end = text.find("\r\n\r\n");
    if (head_end == std::string::npos) continue;
    const size_t first_space = text.find(' ');
    const size_t second_space = text.find(' ', first_space + 1);
    request->method = text.substr(0, first_space);
    request->target = text.substr(first_space + 1, second_space - first_space - 1);
    for (size_t at = text.find("\r\n") + 2; at < head_end;) {
      const size_t end = text.find("\r\n", at);
      const size_t colon = text.find(':', at);
      std::string name = text.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      const size_t value = text.find_first_not_of(' ', colon + 1);
      request->headers[name] = text.substr(value, end - value);
      at = end + 2;
    }
    length = std::strtoull(request->Header("content-length").c_str(), nullptr, 10);
    // curl asks leave for large bodies.
    if (request->Header("expect") == "100-continue") {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      ::send(fd, kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
    }
  }
  request->body = text.substr(head_end + 4);
  return true;
}

}  // namespace

std::string FakeRequest::Header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? "" : it->second;
}

bool FakeConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void FakeConnection::SendHead(int status, const FakeHeaders& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " Status\r\nConnection: close\r\n";
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  Send(head + "\r\n");
}

void FakeConnection::Respond(int status, const FakeHeaders& headers, std::string_view body) {
  FakeHeaders all = headers;
  all.emplace_back("Content-Length", std::to_string(body.size()));
  SendHead(status, all);
  Send(body);
}

bool FakeConnection::WaitForPeerToLeave() {
  for (;;) {
    pollfd events[2] = {{fd_, POLLIN | POLLRDHUP, 0}, {stop_fd_, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 || events[1].revents != 0) return false;
    char buffer[256];
    if (::recv(fd_, buffer, sizeof(buffer), 0) <= 0) return true;
  }
}

void FakeConnection::Reset() {
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

FakeHttpServer::FakeHttpServer(Handler handler) : handler_(std::move(handler)) {
  listen_fd_ = Listen(&port_);
  int ends[2];
  if (::listen(listen_fd_, 256) != 0 || ::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  stop_read_fd_ = ends[0];
  stop_write_fd_ = ends[1];
  acceptor_ = std::thread([this] { Accept(); });
}

FakeHttpServer::~FakeHttpServer() {
  ::close(stop_write_fd_);
  acceptor_.join();
  for (std::thread& connection : connections_) connection.join();
  ::close(listen_fd_);
  ::close(stop_read_fd_);
}

void FakeHttpServer::Accept() {
  for (;;) {
    pollfd events[2] = {{listen_fd_, POLLIN, 0}, {stop_read_fd_, POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 || events[1].revents != 0) return;
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) connections_.emplace_back([this, fd] { Serve(fd); });
  }
}

void FakeHttpServer::Serve(int fd) {
  FakeRequest request;
  if (ReadRequest(fd, stop_read_fd_, &request)) {
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    FakeConnection connection(fd, stop_read_fd_);
    handler_(request, connection);
  }
  ::close(fd);
}

std::string FakeHttpServer::Url(std::string_view path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
}

std::vector<FakeRequest> FakeHttpServer::Requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

int ClosedPort() {
  int port = 0;
  ::close(Listen(&port));
  return port;
}

}  // namespace hexad
