#include "server/config/values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace hexad {
namespace {

struct Unit {
  std::string_view name;
  int64_t bytes;
};
// Binary units first, largest first: FormatBytes takes the first that divides.
constexpr std::array<Unit, 9> kUnits = {{{"TiB", int64_t{1} << 40},
                                         {"GiB", int64_t{1} << 30},
                                         {"MiB", int64_t{1} << 20},
                                         {"KiB", int64_t{1} << 10},
                                         {"TB", 1'000'000'000'000},
                                         {"GB", 1'000'000'000},
                                         {"MB", 1'000'000},
                                         {"KB", 1'000},
                                         {"B", 1}}};

template <typename Number>
std::optional<Number> ParseWhole(std::string_view text) {
  Number number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) { return ParseWhole<int64_t>(text); }

std::optional<int64_t> ParseBytes(std::string_view text) {
  int64_t unit = 1;
  for (const Unit& candidate : kUnits) {
    if (!text.ends_with(candidate.name)) continue;
    unit = candidate.bytes;
    text.remove_suffix(candidate.name.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
    break;
  }
  if (const std::optional<int64_t> whole = ParseInteger(text); whole.has_value()) {
    if (*whole < 0 || *whole > std::numeric_limits<int64_t>::max() / unit) return std::nullopt;
    return *whole * unit;
  }
  const std::optional<double> number = ParseWhole<double>(text);
  if (!number.has_value() || !std::isfinite(*number) || *number < 0) return std::nullopt;
  const double bytes = *number * static_cast<double>(unit);
  if (bytes > 9e18 || bytes != std::floor(bytes)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string FormatBytes(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) {
      return std::to_string(bytes / unit.bytes) + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + "B";
}

std::optional<absl::Duration> ParseTimeSpan(std::string_view text) {
  // A bare number would mean seconds to one reader and milliseconds to the next.
  if (text.empty() || text.size() > 32 || text.back() < 'a' || text.back() > 'z') {
    return std::nullopt;
  }
  absl::Duration duration;
  if (!absl::ParseDuration(std::string(text), &duration)) return std::nullopt;
  if (duration < absl::ZeroDuration() || duration == absl::InfiniteDuration()) return std::nullopt;
  return duration;
}

std::string FormatTimeSpan(absl::Duration duration) {
  const std::string text = absl::FormatDuration(duration);
  return text == "0" ? "0s" : text;
}

std::optional<ListenAddress> ParseListenAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.size() > 64) return std::nullopt;
  const std::optional<uint16_t> port = ParseWhole<uint16_t>(text.substr(colon + 1));
  std::string host(text.substr(0, colon));
  if (!port.has_value()) return std::nullopt;
  std::array<unsigned char, 16> parsed;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (::inet_pton(AF_INET6, host.c_str(), parsed.data()) != 1) return std::nullopt;
  } else {
    if (host == "localhost") host = "127.0.0.1";
    if (::inet_pton(AF_INET, host.c_str(), parsed.data()) != 1) return std::nullopt;
  }
  return ListenAddress{host, *port};
}

std::string ListenAddress::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool ListenAddress::IsLoopback() const {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

size_t EditDistance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 64;  // names are short; what is not is no slip of the pen
  if (a.size() > kLongest || b.size() > kLongest) return std::string_view::npos;
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace hexad
