#include "engine/tokenizer/special_matcher.h"

namespace hexad {
namespace {

uint64_t EdgeKey(uint32_t node, char byte) {
  return (static_cast<uint64_t>(node) << 8) | static_cast<uint8_t>(byte);
}

}  // namespace

SpecialMatcher::SpecialMatcher() : ids_(1, -1) {}

void SpecialMatcher::Add(std::string_view text, int32_t id) {
  if (text.empty()) return;
  starts_[static_cast<uint8_t>(text[0])] = true;
  uint32_t node = 0;
  for (char byte : text) {
    const auto next = static_cast<uint32_t>(ids_.size());
    const auto [edge, inserted] = edges_.try_emplace(EdgeKey(node, byte), next);
    if (inserted) ids_.push_back(-1);
    node = edge->second;
  }
  ids_[node] = id;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::Find(std::string_view text,
                                                          size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    Match longest;
    uint32_t node = 0;
    for (size_t end = begin; end < text.size(); ++end) {
      const auto edge = edges_.find(EdgeKey(node, text[end]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ids_[node] >= 0) longest = {begin, end + 1 - begin, ids_[node]};
    }
    if (longest.id >= 0) return longest;
  }
  return std::nullopt;
}

}  // namespace hexad
