#include "server/client/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace hexad {
namespace {

// What the handler may touch: it has no argument of its own.
std::atomic<int> interrupt_fd{-1};

void OnInterrupt(int) {
  const int saved = errno;
  const uint64_t one = 1;
  const int fd = interrupt_fd.load();
  if (fd >= 0 && ::write(fd, &one, sizeof(one)) < 0) {
    // A full counter is as good as one more.
  }
  errno = saved;
}

}  // namespace

InterruptScope::InterruptScope() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  interrupt_fd = fd_;
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &before_);
}

InterruptScope::~InterruptScope() {
  ::sigaction(SIGINT, &before_, nullptr);
  interrupt_fd = -1;
  ::close(fd_);
}

bool InterruptScope::Take() {
  uint64_t count = 0;
  return ::read(fd_, &count, sizeof(count)) == sizeof(count);
}

}  // namespace hexad
