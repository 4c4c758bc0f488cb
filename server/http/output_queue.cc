#include "server/http/output_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>

namespace hexad {
namespace {

constexpr size_t kMaxVectors = 64;

}  // namespace

void OutputQueue::Push(std::string bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  pieces_.push_back(std::move(bytes));
}

OutputQueue::Result OutputQueue::Send(int socket, size_t* sent) {
  while (!pieces_.empty()) {
    iovec vectors[kMaxVectors];
    size_t count = 0;
    size_t offset = offset_;
    for (size_t i = first_; i < pieces_.size() && count < kMaxVectors; ++i, ++count) {
      vectors[count] = {pieces_[i].data() + offset, pieces_[i].size() - offset};
      offset = 0;
    }
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    const ssize_t taken = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken >= 0) {
      *sent += static_cast<size_t>(taken);
      Remove(static_cast<size_t>(taken));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Result::kBlocked;
    } else if (errno != EINTR) {
      return Result::kFailed;
    }
  }
  return Result::kEmpty;
}

void OutputQueue::Remove(size_t size) {
  bytes_ -= size;
  while (size > 0) {
    const size_t left = pieces_[first_].size() - offset_;
    if (size < left) {
      offset_ += size;
      return;
    }
    size -= left;
    offset_ = 0;
    pieces_[first_++] = std::string();
  }
  if (first_ == pieces_.size()) {
    pieces_ = {};
    first_ = 0;
  }
}

}  // namespace hexad
