#include "kvcache/core/promises.h"

#include <utility>

#include "kvcache/core/check.h"

namespace hexad {

bool Promises::Add(const ContentKey& key, TableId producer) {
  return promises_.try_emplace(key, Promise{producer, {}}).second;
}

const Promises::Promise* Promises::Find(const ContentKey& key) const {
  const auto found = promises_.find(key);
  return found == promises_.end() ? nullptr : &found->second;
}

void Promises::AddFollower(const ContentKey& key, TableId follower) {
  const auto found = promises_.find(key);
  HEXAD_CHECK(found != promises_.end(), "nobody promised this block");
  found->second.followers.push_back(follower);
}

void Promises::RemoveFollower(const ContentKey& key, TableId follower) {
  const auto found = promises_.find(key);
  HEXAD_CHECK(found != promises_.end(), "nobody promised this block");
  HEXAD_CHECK(std::erase(found->second.followers, follower) == 1, "not a follower");
}

std::vector<TableId> Promises::Remove(const ContentKey& key) {
  const auto found = promises_.find(key);
  if (found == promises_.end()) return {};
  std::vector<TableId> followers = std::move(found->second.followers);
  promises_.erase(found);
  return followers;
}

}  // namespace hexad
