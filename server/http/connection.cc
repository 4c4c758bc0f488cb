#include "server/http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "absl/strings/str_format.h"

namespace hexad {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// Pipelined requests kept while one is answered; more stay in the kernel.
constexpr size_t kMaxPipelinedBytes = 64 * 1024;
constexpr size_t kMaxDiscardedBytes = 1024 * 1024;
constexpr std::chrono::seconds kLingerTime{2};

std::chrono::nanoseconds ToChrono(absl::Duration duration) {
  // Bounded, so that adding it to a clock cannot overflow.
  return absl::ToChronoNanoseconds(std::min(duration, absl::Hours(24 * 365)));
}

HttpError InvalidRequest(int status, std::string message) {
  return HttpError{
      .status = status, .type = "invalid_request_error", .message = std::move(message)};
}

HttpResponse NoRouteResponse(const HttpRequest& request, const Router::Match& match) {
  if (match.allow.empty()) {
    HttpError error = InvalidRequest(
        404, absl::StrFormat("Unknown request URL: %s %s.", request.method, request.path));
    error.code = "unknown_url";
    return ErrorResponse(error);
  }
  HttpResponse response = ErrorResponse(InvalidRequest(
      405, absl::StrFormat("%s is not allowed on %s.", request.method, request.path)));
  response.headers.emplace_back("allow", match.allow);
  return response;
}

}  // namespace

Connection::Connection(IoThread* io, uint64_t id, tcp::socket socket)
    : io_(io), id_(id), socket_(std::move(socket)), timer_(io->context) {}

void Connection::Start() {
  boost::system::error_code error;
  const tcp::endpoint peer = socket_.remote_endpoint(error);
  if (!error) {
    const std::string address = peer.address().to_string(error);
    access_.peer = peer.address().is_v6() ? absl::StrFormat("[%s]:%d", address, peer.port())
                                          : absl::StrFormat("%s:%d", address, peer.port());
  }
  SetDeadline(Clock::now() + ToChrono(io_->shared->options.limits.idle_timeout));
  OnReadable();
}

// ---------------------------------------------------------------------------------------- reading

void Connection::ArmRead() {
  if (read_armed_ || input_ended_ || phase_ == Phase::kClosed) return;
  // With too much pipelined, only errors are waited for: a reset is still noticed.
  input_full_ = phase_ == Phase::kHandling && input_.size() >= kMaxPipelinedBytes;
  read_armed_ = true;
  socket_.async_wait(input_full_ ? tcp::socket::wait_error : tcp::socket::wait_read,
                     [self = shared_from_this()](boost::system::error_code error) {
                       self->read_armed_ = false;
                       if (!error) return self->OnReadable();
                       self->ArmRead();  // StartReading cancelled it
                     });
}

void Connection::OnReadable() {
  if (phase_ == Phase::kClosed) return;
  const ssize_t size =
      ::recv(socket_.native_handle(), io_->scratch.data(), io_->scratch.size(), MSG_DONTWAIT);
  if (size > 0) {
    OnBytes({io_->scratch.data(), static_cast<size_t>(size)});
  } else if (size == 0) {
    OnEndOfInput();
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    Fail(CloseReason::kClientGone);
  }
  ArmRead();
}

void Connection::OnBytes(std::string_view bytes) {
  if (phase_ == Phase::kLingering || phase_ == Phase::kFlushing) {
    discarded_bytes_ += bytes.size();
    if (discarded_bytes_ > kMaxDiscardedBytes) Close();
    return;
  }
  input_.append(bytes);
  if (phase_ == Phase::kReading) Advance();
}

// A client that closes its sending side while it waits is taken to be gone: no other sign comes
// from one that was closed whole. An answer that is already complete is still sent.
void Connection::OnEndOfInput() {
  input_ended_ = true;
  switch (phase_) {
    case Phase::kHandling:
      if (answer_complete_ || (exchange_ != nullptr && exchange_->answered())) {
        keep_alive_ = false;
      } else {
        Fail(CloseReason::kClientGone);
      }
      break;
    case Phase::kFlushing:
      break;
    default:
      Close();
  }
}

void Connection::Advance() {
  while (phase_ == Phase::kReading) {
    if (parser_ == nullptr) {
      if (input_.empty()) break;
      const HttpLimits& limits = io_->shared->options.limits;
      parser_ = std::make_unique<RequestParser>(limits.max_header_bytes, limits.max_body_bytes);
      request_start_ = Clock::now();
      SetDeadline(request_start_ + ToChrono(limits.header_timeout));
    }
    size_t consumed = 0;
    const RequestParser::State state = parser_->Feed(input_, &consumed);
    input_.erase(0, consumed);
    if (state == RequestParser::State::kFailed) {
      Refuse(ErrorResponse(parser_->error()));
    } else if (state == RequestParser::State::kHeaderDone) {
      if (!OnHeader()) return;
    } else if (!ChargeBody(parser_->body_bytes())) {
      return;
    } else if (state == RequestParser::State::kDone) {
      Dispatch();
    } else {
      break;
    }
  }
  if (phase_ == Phase::kReading && parser_ == nullptr && io_->draining) {
    Close();
    return;
  }
  ArmRead();
}

bool Connection::OnHeader() {
  const HttpRequest& request = parser_->request();
  access_.method = request.method;
  access_.path = request.path;
  const std::string_view id = request.Header("x-request-id");
  access_.request_id = IsSaneRequestId(id) ? std::string(id) : io_->NewRequestId();
  is_head_ = request.method == "HEAD";
  is_http_1_0_ = request.is_http_1_0;

  // Refused before a body is taken in.
  const Router::Match match = io_->shared->router.Find(request.method, request.path);
  if (match.route != nullptr) access_.route = match.route->pattern;
  if (match.route != nullptr && match.route->json_body &&
      !IsJsonContentType(request.Header("content-type"))) {
    Refuse(ErrorResponse(
        InvalidRequest(415, "The request needs the header Content-Type: application/json.")));
    return false;
  }
  if (!parser_->has_body()) return true;
  if (match.route == nullptr) {
    Refuse(NoRouteResponse(request, match));
    return false;
  }
  SetDeadline(Clock::now() + ToChrono(io_->shared->options.limits.body_timeout));
  if (parser_->expects_continue() && input_.empty()) {
    Queue("HTTP/1.1 100 Continue\r\n\r\n");
    Flush();
  }
  return phase_ == Phase::kReading;
}

bool Connection::ChargeBody(size_t bytes) {
  std::atomic<int64_t>& total = io_->shared->buffered_body_bytes;
  const auto delta = static_cast<int64_t>(bytes) - static_cast<int64_t>(charged_bytes_);
  charged_bytes_ = bytes;
  const int64_t now = total.fetch_add(delta) + delta;
  if (delta <= 0 ||
      now <= static_cast<int64_t>(io_->shared->options.limits.max_buffered_body_bytes)) {
    return true;
  }
  Refuse(ErrorResponse(HttpError{.status = 503,
                                 .type = "server_error",
                                 .message = "Too many large requests are being received.",
                                 .code = "overloaded",
                                 .retry_after_seconds = 1}));
  return false;
}

void Connection::Dispatch() {
  HttpRequest request = parser_->TakeRequest();
  parser_.reset();
  ++io_->shared->requests;
  phase_ = Phase::kHandling;
  request_open_ = true;
  answer_complete_ = false;
  keep_alive_ = request.keep_alive && !io_->draining && !input_ended_;
  SetDeadline(Clock::time_point::max());
  request.peer = access_.peer;
  request.request_id = access_.request_id;
  exchange_ = std::make_shared<Exchange>([outbox = io_->outbox, id = id_] { outbox->Notify(id); },
                                         io_->shared->options.limits.max_pending_bytes);
  ResponseWriter writer(exchange_);
  Router::Match match = io_->shared->router.Find(request.method, request.path);
  if (match.route == nullptr) {
    writer.Send(NoRouteResponse(request, match));
  } else {
    request.parameter = std::move(match.parameter);
    try {
      match.route->handler(std::move(request), std::move(writer));
    } catch (const std::exception&) {
      // The writer is gone, which answers 500.
    }
  }
  TakeOutput();
}

void Connection::StartReading() {
  phase_ = Phase::kReading;
  exchange_.reset();
  stream_.reset();
  if (input_.capacity() > kMaxPipelinedBytes && input_.empty()) input_ = std::string();
  if (std::exchange(input_full_, false)) socket_.cancel();  // no write is waited for here
  SetDeadline(Clock::now() + ToChrono(io_->shared->options.limits.idle_timeout));
}

// ---------------------------------------------------------------------------------------- writing

void Connection::OnOutput() {
  if (phase_ != Phase::kHandling) return;
  TakeOutput();
  if (phase_ == Phase::kReading) Advance();
}

void Connection::TakeOutput() {
  if (answer_complete_) return;  // a wake-up that Dispatch was ahead of
  Exchange::Output output = exchange_->Take();
  if (output.overflow) return Fail(CloseReason::kSlowReader);
  if (output.whole.has_value()) {
    QueueWhole(*std::move(output.whole));
  } else {
    if (output.head.has_value()) QueueStreamHead(*std::move(output.head));
    if (!output.data.empty()) QueueChunk(std::move(output.data));
    if (output.aborted) keep_alive_ = false;
    if (output.finished && !output.aborted && chunked_ && stream_.has_value() && !is_head_) {
      Queue(std::string(kLastChunk));
    }
  }
  answer_complete_ = output.finished;
  Flush();
}

void Connection::QueueWhole(HttpResponse response) {
  access_.status = response.status;
  const bool has_body = !is_head_ && response.status != 204;
  std::string bytes = FormatHead({.status = response.status,
                                  .content_type = response.content_type,
                                  .headers = &response.headers,
                                  .request_id = access_.request_id,
                                  .length = response.body.size(),
                                  .keep_alive = keep_alive_},
                                 absl::Now());
  Queue(std::move(bytes));
  if (has_body && !response.body.empty()) Queue(std::move(response.body));
}

void Connection::QueueStreamHead(StreamHead head) {
  access_.status = 200;
  chunked_ = !is_http_1_0_;
  if (!chunked_) keep_alive_ = false;
  Queue(FormatHead({.content_type = head.content_type,
                    .headers = &head.headers,
                    .request_id = access_.request_id,
                    .framing = chunked_ ? BodyFraming::kChunked : BodyFraming::kUntilClose,
                    .keep_alive = keep_alive_},
                   absl::Now()));
  head.headers = {};
  stream_ = std::move(head);
}

void Connection::QueueChunk(std::vector<std::string> data) {
  if (is_head_) return;
  size_t size = 0;
  for (const std::string& piece : data) size += piece.size();
  if (chunked_) Queue(ChunkHeader(size));
  for (std::string& piece : data) Queue(std::move(piece));
  if (chunked_) Queue(std::string(kChunkEnd));
}

void Connection::Queue(std::string bytes) {
  access_.response_bytes += bytes.size();
  out_.Push(std::move(bytes));
}

void Connection::Flush() {
  if (phase_ == Phase::kClosed || write_armed_) return;
  size_t sent = 0;
  const OutputQueue::Result result = out_.Send(socket_.native_handle(), &sent);
  if (sent > 0) last_write_ = Clock::now();
  if (result == OutputQueue::Result::kFailed) return Fail(CloseReason::kClientGone);
  if (exchange_ != nullptr) exchange_->SetUnsentBytes(out_.bytes());
  if (result == OutputQueue::Result::kEmpty) return OnFlushed();
  if (!write_armed_) {
    write_armed_ = true;
    socket_.async_wait(tcp::socket::wait_write,
                       [self = shared_from_this()](boost::system::error_code error) {
                         self->write_armed_ = false;
                         if (error) return;
                         self->Flush();
                         if (self->phase_ == Phase::kReading) self->Advance();
                       });
    write_deadline_ = Clock::now() + ToChrono(io_->shared->options.limits.write_timeout);
  }
  UpdateDeadline();
}

void Connection::OnFlushed() {
  if (phase_ == Phase::kFlushing) {
    EndRequest();
    Linger();
    return;
  }
  if (phase_ != Phase::kHandling) return;
  if (!answer_complete_) {
    UpdateDeadline();
    return;
  }
  EndRequest();
  if (keep_alive_ && !input_ended_ && !io_->draining) {
    StartReading();
  } else {
    Linger();
  }
}

void Connection::Refuse(HttpResponse response) {
  parser_.reset();
  keep_alive_ = false;
  request_open_ = true;
  ++io_->shared->requests;
  if (access_.request_id.empty()) access_.request_id = io_->NewRequestId();
  phase_ = Phase::kFlushing;
  input_.clear();
  QueueWhole(std::move(response));
  Flush();
}

void Connection::Linger() {
  exchange_.reset();
  stream_.reset();
  phase_ = Phase::kLingering;
  boost::system::error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  if (error || input_ended_) return Close();
  input_ = std::string();
  SetDeadline(Clock::now() + kLingerTime);
  ArmRead();
}

// ----------------------------------------------------------------------------------------- ending

void Connection::BeginDrain() {
  keep_alive_ = false;
  if (phase_ == Phase::kReading && parser_ == nullptr && input_.empty()) Close();
}

void Connection::EndStream() {
  keep_alive_ = false;
  if (phase_ == Phase::kReading || phase_ == Phase::kLingering) return Close();
  if (phase_ != Phase::kHandling || answer_complete_ || exchange_->answered()) return;
  if (stream_.has_value()) {
    if (!stream_->stop_bytes.empty()) QueueChunk({stream_->stop_bytes});
    if (chunked_ && !is_head_) Queue(std::string(kLastChunk));
  } else {
    QueueWhole(ErrorResponse(HttpError{.status = 503,
                                       .type = "server_error",
                                       .message = "The server is shutting down.",
                                       .code = "overloaded",
                                       .retry_after_seconds = 1}));
  }
  CloseExchange(CloseReason::kServerStopping);
  phase_ = Phase::kFlushing;
  Flush();
}

void Connection::CloseExchange(CloseReason reason) {
  if (exchange_ == nullptr) return;
  const std::shared_ptr<Exchange> exchange = std::move(exchange_);
  exchange_ = nullptr;
  exchange->Close(reason);
}

void Connection::EndRequest() {
  if (!std::exchange(request_open_, false)) return;
  ChargeBody(0);
  if (access_.status == 0) access_.status = 499;
  if (io_->shared->options.on_access) {
    access_.duration = absl::FromChrono(Clock::now() - request_start_);
    io_->shared->options.on_access(access_);
  }
  access_ = HttpAccess{.peer = std::move(access_.peer)};
}

void Connection::Fail(CloseReason reason) {
  if (phase_ == Phase::kHandling) {
    ++(reason == CloseReason::kSlowReader ? io_->shared->slow_readers : io_->shared->clients_gone);
  }
  CloseExchange(reason);
  Close();
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  phase_ = Phase::kClosed;
  CloseExchange(CloseReason::kServerStopping);
  ChargeBody(0);
  EndRequest();
  parser_.reset();
  boost::system::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  io_->connections.erase(id_);
  std::lock_guard lock(io_->shared->mutex);
  if (--io_->shared->open_connections == 0) io_->shared->all_closed.notify_all();
}

// ------------------------------------------------------------------------------------------- time

void Connection::SetDeadline(Clock::time_point deadline) {
  deadline_ = deadline;
  // A timer that fires early finds the later deadline and is armed again: moving it at every token
  // would cost more than that.
  if (deadline_ < armed_for_) ArmTimer();
}

void Connection::ArmTimer() {
  armed_for_ = deadline_;
  timer_.expires_at(deadline_);  // cancels an earlier wait
  timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (error || self->phase_ == Phase::kClosed) return;
    self->armed_for_ = Clock::time_point::max();
    if (Clock::now() >= self->deadline_) {
      self->OnDeadline();
    } else if (self->deadline_ != Clock::time_point::max()) {
      self->ArmTimer();
    }
  });
}

void Connection::UpdateDeadline() {
  Clock::time_point deadline = Clock::time_point::max();
  if (write_armed_) deadline = write_deadline_;
  if (phase_ == Phase::kHandling && stream_.has_value() && !answer_complete_ &&
      !stream_->keep_alive_bytes.empty() && stream_->keep_alive_interval > absl::ZeroDuration()) {
    deadline = std::min(deadline, last_write_ + ToChrono(stream_->keep_alive_interval));
  }
  SetDeadline(deadline);
}

void Connection::OnDeadline() {
  deadline_ = Clock::time_point::max();
  switch (phase_) {
    case Phase::kReading:
      if (parser_ == nullptr) return Close();
      return Refuse(ErrorResponse(InvalidRequest(408, "The request did not arrive in time.")));
    case Phase::kHandling:
      if (write_armed_ && Clock::now() >= write_deadline_) return Fail(CloseReason::kSlowReader);
      if (stream_.has_value() && !write_armed_ && !answer_complete_) {
        QueueChunk({stream_->keep_alive_bytes});
        Flush();
      }
      UpdateDeadline();
      return;
    case Phase::kFlushing:
    case Phase::kLingering:
      return Close();
    case Phase::kClosed:
      return;
  }
}

}  // namespace hexad
