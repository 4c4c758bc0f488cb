#pragma once

// One client connection: reads a request, hands it to its route, writes the answer, again.
//
// Internal to server/http; includes Asio. Everything runs on the connection's I/O thread. Sockets
// are non-blocking: recv and sendmsg are tried directly and Asio only waits for readiness, so an
// idle stream holds no buffer and a write costs one system call. While a request is being answered
// the read side stays watched, so a client that leaves is noticed when no bytes flow.

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/http/exchange.h"
#include "server/http/io_thread.h"
#include "server/http/output_queue.h"
#include "server/http/request_parser.h"
#include "server/http/wire.h"

namespace hexad {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(IoThread* io, uint64_t id, boost::asio::ip::tcp::socket socket);

  void Start();
  void OnOutput();  // the exchange has output
  void BeginDrain();
  void EndStream();  // the drain deadline passed
  void Close();      // at once

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : uint8_t {
    kReading,    // idle, or a request has begun
    kHandling,   // a handler owns the answer; pipelined bytes are kept, bounded
    kFlushing,   // the last answer is leaving
    kLingering,  // sent all and closed the sending side; discards until the client closes too,
                 // since closing with unread input would reset the connection under the answer
    kClosed,
  };

  // Reading.
  void ArmRead();
  void OnReadable();
  void OnBytes(std::string_view bytes);
  void OnEndOfInput();
  void Advance();
  bool OnHeader();  // false: refused
  void Dispatch();
  bool ChargeBody(size_t bytes);
  void StartReading();

  // Writing.
  void TakeOutput();
  void QueueWhole(HttpResponse response);
  void QueueStreamHead(StreamHead head);
  void QueueChunk(std::vector<std::string> data);
  void Queue(std::string bytes);
  void Flush();
  void OnFlushed();
  void Refuse(HttpResponse response);  // answer, then close
  void Linger();

  // Ending.
  void CloseExchange(CloseReason reason);
  void EndRequest();  // access record, counters
  void Fail(CloseReason reason);

  // Time.
  void SetDeadline(Clock::time_point deadline);
  void UpdateDeadline();  // of kHandling and kFlushing
  void ArmTimer();
  void OnDeadline();

  IoThread* const io_;
  const uint64_t id_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  Phase phase_ = Phase::kReading;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool input_full_ = false;  // the read side waits for errors only
  bool input_ended_ = false;

  std::string input_;  // received, not parsed
  std::unique_ptr<RequestParser> parser_;
  size_t charged_bytes_ = 0;
  size_t discarded_bytes_ = 0;

  std::shared_ptr<Exchange> exchange_;
  HttpAccess access_;  // of the request in progress
  Clock::time_point request_start_;
  bool request_open_ = false;
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool is_http_1_0_ = false;
  bool answer_complete_ = false;
  std::optional<StreamHead> stream_;  // begun
  bool chunked_ = false;

  OutputQueue out_;
  Clock::time_point last_write_;
  Clock::time_point write_deadline_;

  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point armed_for_ = Clock::time_point::max();  // max: the timer is not armed
};

}  // namespace hexad
