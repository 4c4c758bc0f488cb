#include "server/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/http/connection.h"
#include "server/http/io_thread.h"
#include "server/http/wire.h"

namespace hexad {
namespace asio = boost::asio;
using asio::ip::tcp;

void Outbox::Notify(uint64_t connection) {
  std::lock_guard lock(mutex_);
  if (context_ == nullptr) return;
  waiting_.push_back(connection);
  if (waiting_.size() == 1) asio::post(*context_, drain_);
}

std::vector<uint64_t> Outbox::Take() {
  std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void Outbox::Detach() {
  std::lock_guard lock(mutex_);
  context_ = nullptr;
}

IoThread::IoThread(HttpShared* shared_state)
    : shared(shared_state),
      work(asio::make_work_guard(context)),
      outbox(std::make_shared<Outbox>(&context, [this] { DrainOutbox(); })),
      random(std::random_device{}()) {}

IoThread::~IoThread() { outbox->Detach(); }

void IoThread::DrainOutbox() {
  for (const uint64_t id : outbox->Take()) {
    const auto it = connections.find(id);
    if (it == connections.end()) continue;
    const std::shared_ptr<Connection> connection = it->second;  // it may close and erase itself
    connection->OnOutput();
  }
}

namespace {

// Connections erase themselves from the map when they close.
template <typename Action>
void ForEachConnection(IoThread* io, Action action) {
  std::vector<std::shared_ptr<Connection>> all;
  all.reserve(io->connections.size());
  for (const auto& [id, connection] : io->connections) all.push_back(connection);
  for (const auto& connection : all) action(connection.get());
}

// Accepting fails for a while when file descriptors run out; trying at once would spin.
constexpr std::chrono::milliseconds kAcceptRetry{100};
constexpr absl::Duration kLastFlush = absl::Seconds(2);

// Memory that runs out in one connection's work must not end the thread of all of them.
void RunUntilOutOfWork(asio::io_context* context) {
  for (;;) {
    try {
      context->run();
      return;
    } catch (const std::exception&) {
    }
  }
}

}  // namespace

void IoThread::BeginDrain() {
  draining = true;
  ForEachConnection(this, [](Connection* connection) { connection->BeginDrain(); });
}

void IoThread::EndStreams() {
  draining = true;
  ForEachConnection(this, [](Connection* connection) { connection->EndStream(); });
}

void IoThread::CloseAll() {
  ForEachConnection(this, [](Connection* connection) { connection->Close(); });
}

std::string IoThread::NewRequestId() {
  return absl::StrFormat("req-%016x%016x", random(), random());
}

// ------------------------------------------------------------------------------------------------

struct HttpServer::Impl {
  HttpShared shared;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::unique_ptr<tcp::acceptor> acceptor;    // used on threads[0] only
  std::unique_ptr<asio::steady_timer> retry;  // likewise
  size_t next_thread = 0;
  uint16_t port = 0;
  bool stopping = false;  // threads[0]
  bool stopped = false;   // the caller's

  absl::Status Listen();
  void Accept();
  void OnAccepted(IoThread* target, tcp::socket socket);
  void WaitUntilClosed(absl::Duration timeout);
  void PostToAll(void (IoThread::*method)());
};

absl::Status HttpServer::Impl::Listen() {
  const HttpServerOptions& options = shared.options;
  const std::string name = options.address == "localhost" ? "127.0.0.1" : options.address;
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(name, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "HTTP cannot listen on \"%s\": it is no IP address. Use 127.0.0.1 for this machine only or "
        "0.0.0.0 for every interface.",
        options.address));
  }
  const tcp::endpoint endpoint(address, options.port);
  acceptor = std::make_unique<tcp::acceptor>(threads[0]->context);
  retry = std::make_unique<asio::steady_timer>(threads[0]->context);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return absl::AlreadyExistsError(absl::StrFormat(
        "HTTP cannot listen on %s:%d: another program has the port. Stop it (ss -ltnp 'sport = "
        ":%d' "
        "names it), or choose another port for listen.http; port 0 takes any free one.",
        options.address, options.port, options.port));
  }
  if (error) {
    const std::string message = absl::StrFormat(
        "HTTP cannot listen on %s:%d: %s.%s", options.address, options.port, error.message(),
        error == asio::error::access_denied ? " Ports below 1024 need privileges." : "");
    return absl::FailedPreconditionError(message);
  }
  port = acceptor->local_endpoint(error).port();
  return absl::OkStatus();
}

void HttpServer::Impl::Accept() {
  if (stopping) return;
  IoThread* const target = threads[next_thread++ % threads.size()].get();
  acceptor->async_accept(target->context,
                         [this, target](boost::system::error_code error, tcp::socket socket) {
                           if (stopping || error == asio::error::operation_aborted) return;
                           if (!error) OnAccepted(target, std::move(socket));
                           if (!error || error == asio::error::connection_aborted) {
                             Accept();
                             return;
                           }
                           retry->expires_after(kAcceptRetry);
                           retry->async_wait([this](boost::system::error_code cancelled) {
                             if (!cancelled) Accept();
                           });
                         });
}

void HttpServer::Impl::OnAccepted(IoThread* target, tcp::socket socket) {
  boost::system::error_code ignored;
  socket.native_non_blocking(true, ignored);
  bool refused = false;
  {
    std::lock_guard lock(shared.mutex);
    refused = shared.open_connections >= shared.options.limits.max_connections;
    if (!refused) ++shared.open_connections;
  }
  if (refused) {
    ++shared.refused;
    const HttpResponse response = ErrorResponse(HttpError{.status = 503,
                                                          .type = "server_error",
                                                          .message = "Too many connections.",
                                                          .code = "overloaded",
                                                          .retry_after_seconds = 1});
    const std::string bytes = FormatHead({.status = response.status,
                                          .content_type = response.content_type,
                                          .headers = &response.headers,
                                          .length = response.body.size(),
                                          .keep_alive = false},
                                         absl::Now()) +
                              response.body;
    ::send(socket.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;  // the socket closes
  }
  ++shared.accepted;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  asio::post(target->context, [target, socket = std::move(socket)]() mutable {
    const uint64_t id = target->next_connection++;
    auto connection = std::make_shared<Connection>(target, id, std::move(socket));
    target->connections.emplace(id, connection);
    connection->Start();
    if (target->draining) connection->BeginDrain();
  });
}

void HttpServer::Impl::WaitUntilClosed(absl::Duration timeout) {
  std::unique_lock lock(shared.mutex);
  shared.all_closed.wait_for(lock, absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24))),
                             [this] { return shared.open_connections == 0; });
}

void HttpServer::Impl::PostToAll(void (IoThread::*method)()) {
  for (const auto& thread : threads) {
    asio::post(thread->context, [io = thread.get(), method] { (io->*method)(); });
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                              Router router) {
  auto impl = std::make_unique<Impl>();
  options.io_threads = std::clamp(options.io_threads, 1, 64);
  impl->shared.options = std::move(options);
  impl->shared.router = std::move(router);
  for (int i = 0; i < impl->shared.options.io_threads; ++i) {
    impl->threads.push_back(std::make_unique<IoThread>(&impl->shared));
  }
  if (absl::Status status = impl->Listen(); !status.ok()) return status;
  impl->Accept();
  for (const auto& thread : impl->threads) {
    thread->thread = std::thread([io = thread.get()] { RunUntilOutOfWork(&io->context); });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port; }

HttpStats HttpServer::stats() const {
  HttpShared& shared = impl_->shared;
  HttpStats stats;
  stats.accepted_connections = shared.accepted;
  stats.refused_connections = shared.refused;
  stats.requests = shared.requests;
  stats.clients_gone = shared.clients_gone;
  stats.slow_readers = shared.slow_readers;
  std::lock_guard lock(shared.mutex);
  stats.open_connections = shared.open_connections;
  return stats;
}

void HttpServer::Stop(absl::Duration drain) {
  if (std::exchange(impl_->stopped, true)) return;
  Impl* const impl = impl_.get();
  asio::post(impl->threads[0]->context, [impl] {
    impl->stopping = true;
    boost::system::error_code ignored;
    impl->acceptor->close(ignored);
    impl->retry->cancel();
    // Only now: a connection accepted before is in its thread's queue already, ahead of this.
    impl->PostToAll(&IoThread::BeginDrain);
  });
  impl->WaitUntilClosed(drain);
  impl->PostToAll(&IoThread::EndStreams);
  impl->WaitUntilClosed(kLastFlush);
  impl->PostToAll(&IoThread::CloseAll);
  for (const auto& thread : impl->threads) {
    asio::post(thread->context, [io = thread.get()] { io->work.reset(); });
  }
  for (const auto& thread : impl->threads) thread->thread.join();
  for (const auto& thread : impl->threads) thread->outbox->Detach();
}

}  // namespace hexad
