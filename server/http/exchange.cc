#include "server/http/exchange.h"

#include <utility>

namespace hexad {

Exchange::Exchange(std::function<void()> wake, size_t max_pending_bytes)
    : wake_(std::move(wake)), max_pending_bytes_(max_pending_bytes) {}

bool Exchange::NeedsWake() { return !std::exchange(woken_, true); }

void Exchange::Send(HttpResponse response) {
  bool wake = false;
  std::function<void(CloseReason)> dropped;  // destroyed outside the lock: it may own a writer
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kOpen) return;
    state_ = State::kAnswered;
    output_.whole = std::move(response);
    output_.finished = true;
    dropped = std::exchange(on_close_, nullptr);
    wake = NeedsWake();
  }
  if (wake) wake_();
}

bool Exchange::BeginStream(StreamHead head) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kOpen) return false;
    state_ = State::kStreaming;
    output_.head = std::move(head);
    wake = NeedsWake();
  }
  if (wake) wake_();
  return true;
}

bool Exchange::Write(std::string bytes) {
  bool wake = false;
  bool fits = true;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStreaming || output_.overflow) return false;
    if (bytes.empty()) return true;
    fits = queued_bytes_ + unsent_bytes_ + bytes.size() <= max_pending_bytes_;
    if (fits) {
      queued_bytes_ += bytes.size();
      output_.data.push_back(std::move(bytes));
    } else {
      output_.overflow = true;
    }
    wake = NeedsWake();
  }
  if (wake) wake_();
  return fits;
}

void Exchange::Finish() {
  bool wake = false;
  std::function<void(CloseReason)> dropped;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStreaming) return;
    state_ = State::kAnswered;
    output_.finished = true;
    dropped = std::exchange(on_close_, nullptr);
    wake = NeedsWake();
  }
  if (wake) wake_();
}

void Exchange::Abort() {
  bool wake = false;
  std::function<void(CloseReason)> dropped;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kOpen && state_ != State::kStreaming) return;
    state_ = State::kAnswered;
    output_.finished = true;
    output_.aborted = true;
    dropped = std::exchange(on_close_, nullptr);
    wake = NeedsWake();
  }
  if (wake) wake_();
}

void Exchange::OnClose(std::function<void(CloseReason)> callback) {
  std::optional<CloseReason> closed;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kAnswered) return;
    closed = closed_;
    if (!closed.has_value()) std::swap(on_close_, callback);
  }
  if (closed.has_value()) callback(*closed);
}

void Exchange::OnWritersGone() {
  bool open = false;
  {
    std::lock_guard lock(mutex_);
    open = state_ == State::kOpen;
  }
  // Nobody else can answer any more, so the two steps need no common lock.
  if (open) {
    Send(ErrorResponse(HttpError{.status = 500,
                                 .type = "server_error",
                                 .message = "The server ended the request without an answer.",
                                 .code = "internal_error"}));
  } else {
    Abort();
  }
}

Exchange::Output Exchange::Take() {
  std::lock_guard lock(mutex_);
  woken_ = false;
  unsent_bytes_ += std::exchange(queued_bytes_, 0);
  Output taken = std::move(output_);
  output_ = Output{};
  // Both stay true: a later Take must not look like an unfinished answer.
  output_.finished = taken.finished;
  output_.overflow = taken.overflow;
  return taken;
}

void Exchange::SetUnsentBytes(size_t bytes) {
  std::lock_guard lock(mutex_);
  unsent_bytes_ = bytes;
}

bool Exchange::answered() const {
  std::lock_guard lock(mutex_);
  return state_ == State::kAnswered;
}

void Exchange::Close(CloseReason reason) {
  std::function<void(CloseReason)> callback;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kClosed) return;
    if (state_ != State::kAnswered) {
      state_ = State::kClosed;
      closed_ = reason;
    }
    output_ = Output{};
    output_.finished = true;
    callback = std::exchange(on_close_, nullptr);
  }
  if (callback) callback(reason);
}

// ------------------------------------------------------------------------------------------------

struct ResponseWriter::Handle {
  explicit Handle(std::shared_ptr<Exchange> shared) : exchange(std::move(shared)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { exchange->OnWritersGone(); }

  const std::shared_ptr<Exchange> exchange;
};

ResponseWriter::ResponseWriter(std::shared_ptr<Exchange> exchange)
    : handle_(std::make_shared<Handle>(std::move(exchange))) {}

void ResponseWriter::Send(HttpResponse response) { handle_->exchange->Send(std::move(response)); }
bool ResponseWriter::BeginStream(StreamHead head) {
  return handle_->exchange->BeginStream(std::move(head));
}
bool ResponseWriter::Write(std::string bytes) { return handle_->exchange->Write(std::move(bytes)); }
void ResponseWriter::Finish() { handle_->exchange->Finish(); }
void ResponseWriter::Abort() { handle_->exchange->Abort(); }
void ResponseWriter::OnClose(std::function<void(CloseReason)> callback) {
  handle_->exchange->OnClose(std::move(callback));
}

}  // namespace hexad
