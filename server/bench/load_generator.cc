#include "server/bench/load_generator.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "server/client/http_client.h"

namespace hexad {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kProgressSeconds = 0.5;
// Beyond it an open loop against a server that hangs would use up all descriptors.
constexpr int64_t kMaxInFlight = 4096;

class Generator final {
 public:
  Generator(const ApiServer& server, const Workload& workload, const LoadOptions& options)
      : url_(ApiUrl(server, "/chat/completions")),
        headers_(ApiHeaders(server)),
        workload_(workload),
        options_(options),
        arrivals_(options.rate > 0 ? options.rate : 1, options.poisson, options.seed ^ 0xA771),
        client_(static_cast<long>(Cap())) {
    if (options_.rate > 0) next_arrival_ = arrivals_.Next();
  }

  LoadResult Run(const std::function<void(const LoadProgress&)>& on_progress);

 private:
  int64_t Cap() const {
    return options_.concurrency > 0 ? std::min(options_.concurrency, kMaxInFlight) : kMaxInFlight;
  }
  double Now() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  // When the next request is due; nullopt: there is none.
  std::optional<double> NextDue(double now) const {
    if (result_.interrupted) return std::nullopt;
    if (options_.requests > 0 && sent_ >= options_.requests) return std::nullopt;
    const double due = options_.rate > 0 ? next_arrival_ : now;
    if (options_.duration_seconds > 0 && due >= options_.duration_seconds) return std::nullopt;
    return due;
  }
  void Send(double due);
  void CheckInterrupt();

  std::string url_;
  std::vector<std::string> headers_;
  const Workload& workload_;
  const LoadOptions& options_;
  Arrivals arrivals_;
  double next_arrival_ = 0;
  Clock::time_point started_ = Clock::now();
  int64_t sent_ = 0;
  LoadProgress progress_;
  LoadResult result_;
  struct InFlight {
    std::unique_ptr<RequestProbe> probe;
    uint64_t transfer = 0;
  };
  std::map<uint64_t, InFlight> in_flight_;  // by request number
  HttpClient client_;                       // last: its callbacks use what is above
};

void Generator::Send(double due) {
  auto owned = std::make_unique<RequestProbe>(due, options_.stream);
  RequestProbe* probe = owned.get();
  HttpCall call;
  call.url = url_;
  call.headers = headers_;
  call.body = workload_.Body(static_cast<uint64_t>(sent_));
  call.timeout_seconds = options_.timeout_seconds;
  call.on_body = [this, probe](long status, std::string_view bytes) {
    return probe->OnBody(status, bytes, Now());
  };
  const uint64_t key = static_cast<uint64_t>(sent_++);
  InFlight& entry = in_flight_[key];
  entry.probe = std::move(owned);
  entry.transfer = client_.Start(std::move(call), [this, key](const HttpOutcome& outcome) {
    RequestRecord record = in_flight_[key].probe->Finish(outcome, Now());
    in_flight_.erase(key);
    ++(record.error_kind.empty() ? progress_.completed : progress_.failed);
    if (record.error_kind.empty()) progress_.output_tokens += record.output_tokens;
    result_.records.push_back(std::move(record));
  });
}

void Generator::CheckInterrupt() {
  if (options_.interrupt_fd < 0 || result_.interrupted) return;
  pollfd event{options_.interrupt_fd, POLLIN, 0};
  if (::poll(&event, 1, 0) <= 0) return;
  result_.interrupted = true;
  for (const auto& [key, entry] : in_flight_) client_.Abort(entry.transfer);
}

LoadResult Generator::Run(const std::function<void(const LoadProgress&)>& on_progress) {
  started_ = Clock::now();
  double next_progress = kProgressSeconds;
  for (;;) {
    CheckInterrupt();
    double now = Now();
    std::optional<double> due = NextDue(now);
    while (due.has_value() && *due <= now && static_cast<int64_t>(client_.active()) < Cap()) {
      Send(*due);
      if (options_.rate > 0) next_arrival_ = arrivals_.Next();
      now = Now();
      due = NextDue(now);
    }
    if (!due.has_value() && client_.active() == 0) break;
    if (on_progress && now >= next_progress) {
      next_progress = now + kProgressSeconds;
      progress_.seconds = now;
      progress_.sent = sent_;
      progress_.in_flight = static_cast<int64_t>(client_.active());
      on_progress(progress_);
    }
    double wait = 60;
    if (on_progress) wait = std::min(wait, next_progress - now);
    const bool room = static_cast<int64_t>(client_.active()) < Cap();
    if (due.has_value() && room) wait = std::min(wait, *due - now);
    // Rounded down: the last part of a millisecond is spent looking, so that no arrival is late.
    const auto wait_ms = static_cast<int64_t>(std::max(wait, 0.0) * 1000);
    client_.Poll(std::chrono::milliseconds(wait_ms),
                 result_.interrupted ? -1 : options_.interrupt_fd);
  }
  result_.seconds = Now();
  return std::move(result_);
}

}  // namespace

LoadResult RunLoad(const ApiServer& server, const Workload& workload, const LoadOptions& options,
                   const std::function<void(const LoadProgress&)>& on_progress) {
  return Generator(server, workload, options).Run(on_progress);
}

}  // namespace hexad
