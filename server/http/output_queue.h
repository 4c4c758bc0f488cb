#pragma once

// Bytes on their way into a non-blocking socket, sent as gather writes. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hexad {

class OutputQueue final {
 public:
  enum class Result : uint8_t { kEmpty, kBlocked, kFailed };

  void Push(std::string bytes);
  // Sends until all is gone or the socket takes no more. *sent grows by what it took.
  Result Send(int socket, size_t* sent);

  size_t bytes() const { return bytes_; }
  bool empty() const { return pieces_.empty(); }

 private:
  void Remove(size_t size);

  std::vector<std::string> pieces_;  // none empty
  size_t first_ = 0;                 // pieces before it are sent
  size_t offset_ = 0;                // bytes of pieces_[first_] that are sent
  size_t bytes_ = 0;                 // not sent
};

}  // namespace hexad
