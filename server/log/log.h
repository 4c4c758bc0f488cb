#pragma once

// The structured log: one line an event, a short constant message and typed fields.
//
//   log.Info("call finished", {{"request", request_id}, {"tokens", usage.completion_tokens}});
//
//   2026-03-01T12:00:00.000123Z info call finished request=req-7 tokens=42          (kText)
//   {"ts":"2026-03-01T12:00:00.000123Z","level":"info","msg":"call finished",...}  (kJson)
//
// A line never contains a control character from a value: values with anything but plain characters
// are quoted and escaped, so nothing a client sends can forge a line. Field names and messages are
// ours. Passed as Logger&; there is no global one. Thread-safe; a disabled level costs one load.

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hexad {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError };
enum class LogFormat : uint8_t { kText, kJson };

std::string_view LogLevelName(LogLevel level);
std::optional<LogLevel> ParseLogLevel(std::string_view name);

// A name and a value that are only looked at during the call: nothing is copied while disabled.
class LogField {
 public:
  using Value =
      std::variant<std::string_view, int64_t, uint64_t, double, bool, const absl::Status*>;

  LogField(std::string_view key, std::string_view value) : key(key), value(value) {}
  LogField(std::string_view key, const std::string& value)
      : key(key), value(std::string_view(value)) {}
  LogField(std::string_view key, const char* value) : key(key), value(std::string_view(value)) {}
  LogField(std::string_view key, bool value) : key(key), value(value) {}
  LogField(std::string_view key, std::signed_integral auto value)
      : key(key), value(static_cast<int64_t>(value)) {}
  LogField(std::string_view key, std::unsigned_integral auto value)
      : key(key), value(static_cast<uint64_t>(value)) {}
  LogField(std::string_view key, std::floating_point auto value)
      : key(key), value(static_cast<double>(value)) {}
  // Ids (CallId, WorkerId, ...) by their number.
  template <typename Enum>
  requires std::is_enum_v<Enum> LogField(std::string_view key, Enum value)
      : LogField(key, static_cast<std::underlying_type_t<Enum>>(value)) {}
  // The code's name and the message.
  LogField(std::string_view key, const absl::Status& status) : key(key), value(&status) {}

  std::string_view key;
  Value value;
};

class Logger final {
 public:
  struct Options {
    LogLevel level = LogLevel::kInfo;
    LogFormat format = LogFormat::kText;
    // Gets whole lines with their newline, one call at a time. Empty: standard error.
    std::function<void(std::string_view)> sink;
    // Empty: the wall clock.
    std::function<absl::Time()> now;
  };
  using Fields = std::initializer_list<LogField>;

  Logger() : Logger(Options{}) {}
  explicit Logger(Options options);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool enabled(LogLevel level) const { return level >= level_.load(std::memory_order_relaxed); }
  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  void Debug(std::string_view message, Fields fields = {}) {
    Log(LogLevel::kDebug, message, fields);
  }
  void Info(std::string_view message, Fields fields = {}) { Log(LogLevel::kInfo, message, fields); }
  void Warn(std::string_view message, Fields fields = {}) { Log(LogLevel::kWarn, message, fields); }
  void Error(std::string_view message, Fields fields = {}) {
    Log(LogLevel::kError, message, fields);
  }
  void Log(LogLevel level, std::string_view message, Fields fields) {
    if (enabled(level)) Write(level, message, fields);
  }

 private:
  void Write(LogLevel level, std::string_view message, Fields fields);

  std::atomic<LogLevel> level_;
  const LogFormat format_;
  const std::function<void(std::string_view)> sink_;
  const std::function<absl::Time()> now_;
  std::mutex mutex_;  // one sink call at a time
};

}  // namespace hexad
