#pragma once

// A client that sends exactly the bytes a test wants, on a blocking socket with a long receive
// timeout, so that a missing answer fails instead of hanging.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace hexad {

struct RawResponse {
  int status = 0;  // 0: the connection ended before a whole answer
  std::string head;
  std::string body;         // chunks joined
  bool body_ended = false;  // by its length, its last chunk, or the close it was announced with

  std::string Header(std::string_view name) const {
    size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return "";
    at += name.size() + 4;
    return head.substr(at, head.find("\r\n", at) - at);
  }
};

class RawClient final {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval timeout{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(RawClient&& other) noexcept { *this = std::move(other); }
  RawClient& operator=(RawClient&& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(connected_, other.connected_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }

  bool connected() const { return connected_; }
  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // A reset instead of an orderly end.
  void Reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    Close();
  }
  void CloseSending() { ::shutdown(socket_, SHUT_WR); }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void Get(std::string_view path, std::string_view headers = "") {
    Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) +
         "\r\n");
  }
  void Post(std::string_view path, std::string_view body, std::string_view headers = "") {
    Send("POST " + std::string(path) +
         " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(headers) + "\r\n" + std::string(body));
  }

  // Reads until `text` has arrived; false at the end of the connection. What was read stays.
  bool ReadUntil(std::string_view text) {
    while (buffer_.find(text) == std::string::npos) {
      if (!Fill()) return false;
    }
    return true;
  }
  // True when the server closes; bytes before that are kept in buffer().
  bool ReadToEnd() {
    while (Fill()) {
    }
    return ended_;
  }
  const std::string& buffer() const { return buffer_; }

  RawResponse ReadResponse(bool is_head = false) {
    RawResponse response;
    if (!ReadUntil("\r\n\r\n")) return response;
    const size_t end = buffer_.find("\r\n\r\n");
    response.head = Lower(buffer_.substr(0, end + 2));
    buffer_.erase(0, end + 4);
    response.status = std::atoi(response.head.c_str() + 9);
    if (is_head || response.status == 100 || response.status == 204) {
      response.body_ended = true;
    } else if (response.Header("transfer-encoding") == "chunked") {
      ReadChunks(&response);
    } else if (!response.Header("content-length").empty()) {
      const size_t length = std::strtoul(response.Header("content-length").c_str(), nullptr, 10);
      while (buffer_.size() < length && Fill()) {
      }
      response.body_ended = buffer_.size() >= length;
      response.body = buffer_.substr(0, length);
      buffer_.erase(0, length);
    } else {
      response.body_ended = ReadToEnd();
      response.body = std::exchange(buffer_, "");
    }
    return response;
  }

 private:
  static std::string Lower(std::string text) {
    // Names only; values keep their case.
    bool value = false;
    for (char& c : text) {
      if (c == ':') value = true;
      if (c == '\n') value = false;
      if (!value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
  }
  bool Fill() {
    char bytes[16384];
    const ssize_t size = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (size > 0) buffer_.append(bytes, static_cast<size_t>(size));
    ended_ = size == 0 || (size < 0 && errno == ECONNRESET);
    return size > 0;
  }
  void ReadChunks(RawResponse* response) {
    for (;;) {
      if (!ReadUntil("\r\n")) return;
      const size_t line = buffer_.find("\r\n");
      const size_t size = std::strtoul(buffer_.c_str(), nullptr, 16);
      while (buffer_.size() < line + 2 + size + 2) {
        if (!Fill()) return;
      }
      response->body += buffer_.substr(line + 2, size);
      buffer_.erase(0, line + 2 + size + 2);
      if (size == 0) {
        response->body_ended = true;
        return;
      }
    }
  }

  int socket_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace hexad
