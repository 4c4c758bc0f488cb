#pragma once

// The one door between threads: many post, one owner takes everything at once and otherwise sleeps.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace hexad {

template <typename T>
class Mailbox final {
 public:
  void Post(T message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back(std::move(message));
      if (messages_.size() > 1) return;  // the owner is awake or about to be
    }
    filled_.notify_one();
  }

  // Waits for a message, Close or `wake`; leaves what had been posted, in order. False once closed
  // and empty.
  bool Take(std::vector<T>* messages, absl::Time wake = absl::InfiniteFuture()) {
    messages->clear();
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || !messages_.empty(); };
    if (wake == absl::InfiniteFuture()) {
      filled_.wait(lock, ready);
    } else {
      filled_.wait_until(lock, absl::ToChronoTime(wake), ready);
    }
    messages_.swap(*messages);
    return !closed_ || !messages->empty();
  }

  // For several owners that share the work: waits for a message and takes only that one.
  bool TakeOne(std::vector<T>* messages) {
    messages->clear();
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return closed_ || !messages_.empty(); });
    if (messages_.empty()) return false;
    messages->push_back(std::move(messages_.front()));
    messages_.erase(messages_.begin());
    if (!messages_.empty()) filled_.notify_one();
    return true;
  }

  // The owner sees what was posted before, then the end.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    filled_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<T> messages_;
  bool closed_ = false;
};

}  // namespace hexad
