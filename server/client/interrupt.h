#pragma once

// Ctrl-C as an event in place of the end of the program, for as long as the object lives. One at a
// time in a process (a signal handler is process-wide); the handler before it comes back after.

#include <csignal>

namespace hexad {

class InterruptScope final {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Readable after Ctrl-C until Take().
  int fd() const { return fd_; }
  // True when Ctrl-C came since the last call.
  bool Take();

 private:
  int fd_;
  struct sigaction before_ {};
};

}  // namespace hexad
