#pragma once

// The written form of single values: sizes, times, addresses. Each Parse* gives nullopt for what
// is not one; each Format* gives text that parses to the same value.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/config/config.h"

namespace hexad {

// "4GiB", "1.5MiB", "500MB", "65536"; whole bytes only. Never negative.
std::optional<int64_t> ParseBytes(std::string_view text);
std::string FormatBytes(int64_t bytes);

// "100ms", "1.5s", "1h30m". A unit is required; never negative, never infinite.
std::optional<absl::Duration> ParseTimeSpan(std::string_view text);
std::string FormatTimeSpan(absl::Duration duration);

// "127.0.0.1:8000", "[::1]:8000", "localhost:8000" (which is 127.0.0.1).
std::optional<ListenAddress> ParseListenAddress(std::string_view text);

std::optional<int64_t> ParseInteger(std::string_view text);

// The candidate closest to `name` by edit distance, when it is close enough to be a slip of the
// pen; nullopt otherwise. `Candidates` is any range of strings.
size_t EditDistance(std::string_view a, std::string_view b);
template <typename Candidates>
std::optional<std::string> NearestName(std::string_view name, const Candidates& candidates) {
  std::optional<std::string> nearest;
  size_t best = name.size() / 3 + 2;
  for (const auto& candidate : candidates) {
    const size_t distance = EditDistance(name, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = std::string(candidate);
  }
  return nearest;
}

}  // namespace hexad
