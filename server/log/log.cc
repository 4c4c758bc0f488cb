#include "server/log/log.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>

namespace hexad {
namespace {

// Longer values are cut: a log line is no place for a prompt.
constexpr size_t kMaxValueBytes = 4096;

void WriteToStandardError(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nowhere to complain
    line.remove_prefix(static_cast<size_t>(written));
  }
}

// The length of the well-formed UTF-8 sequence at the front of `text`; 0 when it is not one.
size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;                               // overlong
  if (lead == 0xed && byte(1) >= 0xa0) return 0;                              // surrogate
  if (lead == 0xf0 && byte(1) < 0x90) return 0;                               // overlong
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;                              // past U+10FFFF
  if (lead == 0xc2 && byte(1) < 0xa0) return 0;                               // C1 controls
  if (lead == 0xe2 && byte(1) == 0x80 && (byte(2) & 0xfe) == 0xa8) return 0;  // line separators
  return length;
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_.:/+@,;*~()[]{}").find(c) != std::string_view::npos;
}

// A JSON string. What is no printable well-formed UTF-8 becomes \u00XX of its byte, so that any
// byte can be told from the line and none of them can end it.
void AppendQuoted(std::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  const bool cut = text.size() > kMaxValueBytes;
  if (cut) text = text.substr(0, kMaxValueBytes);
  out->push_back('"');
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    size_t length = Utf8SequenceLength(text);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (byte < 0x20 || byte == 0x7f || length == 0) {
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
      length = 1;
    } else {
      out->append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out->append(cut ? "...\"" : "\"");
}

void AppendText(std::string_view text, bool json, std::string* out) {
  bool plain = !json && !text.empty() && text.size() <= kMaxValueBytes;
  for (size_t i = 0; plain && i < text.size(); ++i) plain = IsPlain(text[i]);
  if (plain) {
    out->append(text);
  } else {
    AppendQuoted(text, out);
  }
}

template <typename Number>
void AppendNumber(Number number, std::string* out) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  out->append(buffer.data(), result.ptr);
}

struct ValueWriter {
  bool json;
  std::string* out;

  void operator()(std::string_view text) const { AppendText(text, json, out); }
  void operator()(int64_t number) const { AppendNumber(number, out); }
  void operator()(uint64_t number) const { AppendNumber(number, out); }
  void operator()(double number) const {
    if (std::isfinite(number)) {
      AppendNumber(number, out);
    } else {
      // JSON has no such number.
      AppendText(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf", json, out);
    }
  }
  void operator()(bool flag) const { out->append(flag ? "true" : "false"); }
  void operator()(const absl::Status* status) const {
    AppendText(status->ok() ? std::string("OK")
                            : std::string(absl::StatusCodeToString(status->code())) + ": " +
                                  std::string(status->message()),
               json, out);
  }
};

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (name == LogLevelName(level)) return level;
  }
  return std::nullopt;
}

Logger::Logger(Options options)
    : level_(options.level),
      format_(options.format),
      sink_(options.sink ? std::move(options.sink) : WriteToStandardError),
      now_(options.now ? std::move(options.now) : [] { return absl::Now(); }) {}

void Logger::Write(LogLevel level, std::string_view message, Fields fields) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", now_(), absl::UTCTimeZone());
  std::string line;
  line.reserve(256);
  const bool json = format_ == LogFormat::kJson;
  if (json) {
    line.append("{\"ts\":\"").append(time).append("\",\"level\":\"");
    line.append(LogLevelName(level)).append("\",\"msg\":");
    AppendQuoted(message, &line);
    for (const LogField& field : fields) {
      line.push_back(',');
      AppendQuoted(field.key, &line);
      line.push_back(':');
      std::visit(ValueWriter{true, &line}, field.value);
    }
    line.append("}\n");
  } else {
    line.append(time).push_back(' ');
    line.append(LogLevelName(level)).push_back(' ');
    // A message is a constant of ours; if one is not after all, it still stays on its line.
    bool printable = true;
    for (const char c : message) printable = printable && c >= 0x20 && c < 0x7f;
    if (printable) {
      line.append(message);
    } else {
      AppendQuoted(message, &line);
    }
    for (const LogField& field : fields) {
      line.push_back(' ');
      line.append(field.key).push_back('=');
      std::visit(ValueWriter{false, &line}, field.value);
    }
    line.push_back('\n');
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  sink_(line);
}

}  // namespace hexad
