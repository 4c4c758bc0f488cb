#include "server/http/router.h"

#include <optional>
#include <utility>

namespace hexad {
namespace {

constexpr std::string_view kParameter = "{id}";

// What {id} matched, or empty for an exact pattern; nullopt when the path does not match.
std::optional<std::string_view> MatchPath(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with(kParameter)) {
    return path == pattern ? std::optional<std::string_view>("") : std::nullopt;
  }
  pattern.remove_suffix(kParameter.size());
  if (!path.starts_with(pattern) || path.size() == pattern.size()) return std::nullopt;
  return path.substr(pattern.size());
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AddMethod(std::string_view method, std::string* allow) {
  if (!allow->empty()) allow->append(", ");
  allow->append(method);
}

}  // namespace

std::string PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = HexValue(text[i + 1]);
      const int low = HexValue(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

void Router::Add(HttpRoute route) { routes_.push_back(std::move(route)); }

Router::Match Router::Find(std::string_view method, std::string_view path) const {
  if (method == "HEAD") method = "GET";
  Match match;
  for (const HttpRoute& route : routes_) {
    const auto parameter = MatchPath(route.pattern, path);
    if (!parameter.has_value()) continue;
    if (route.method == method) {
      match.route = &route;
      match.parameter = PercentDecode(*parameter);
      match.allow.clear();
      return match;
    }
    AddMethod(route.method, &match.allow);
    if (route.method == "GET") AddMethod("HEAD", &match.allow);
  }
  return match;
}

}  // namespace hexad
