#include "server/serving/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace hexad {
namespace {

// Length of the longest suffix of `text` that is a proper prefix of `stop`.
size_t PossibleStart(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopMatcher::Result StopMatcher::Push(std::string_view text) {
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    held_.resize(first);
    return {std::exchange(held_, {}), true};
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, PossibleStart(held_, stop));
  Result result;
  result.text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return result;
}

std::string StopMatcher::Flush() { return std::exchange(held_, {}); }

}  // namespace hexad
