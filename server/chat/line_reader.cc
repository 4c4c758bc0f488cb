#include "server/chat/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/client/interrupt.h"

namespace hexad {
namespace {
constexpr size_t kLineLimit = size_t{1} << 20;
}  // namespace

LineReader::Result LineReader::Read(InterruptScope* interrupt, std::string* line) {
  for (;;) {
    const size_t newline = buffer_.find('\n');
    if (newline != std::string::npos || buffer_.size() > kLineLimit ||
        (ended_ && !buffer_.empty())) {
      const size_t size = std::min({newline, buffer_.size(), kLineLimit});
      *line = buffer_.substr(0, size);
      buffer_.erase(0, size == newline ? size + 1 : size);
      if (!line->empty() && line->back() == '\r') line->pop_back();
      return Result::kLine;
    }
    if (ended_) return Result::kEnd;
    pollfd events[2] = {{fd_, POLLIN, 0}, {interrupt == nullptr ? -1 : interrupt->fd(), POLLIN, 0}};
    if (::poll(events, 2, -1) < 0 && errno != EINTR) return Result::kEnd;
    if (interrupt != nullptr && interrupt->Take()) return Result::kInterrupted;
    if (events[0].revents == 0) continue;
    char bytes[4096];
    const ssize_t got = ::read(fd_, bytes, sizeof(bytes));
    if (got > 0) buffer_.append(bytes, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) ended_ = true;
  }
}

}  // namespace hexad
