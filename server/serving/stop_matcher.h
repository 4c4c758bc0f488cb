#pragma once

// Stop strings over text that arrives in pieces: what may still become a stop string is held back,
// a stop string itself is never returned.

#include <string>
#include <string_view>
#include <vector>

namespace hexad {

class StopMatcher final {
 public:
  explicit StopMatcher(std::vector<std::string> stops);

  struct Result {
    std::string text;      // safe to send
    bool stopped = false;  // a stop string is complete; nothing after it counts
  };
  // REQUIRES: no earlier call stopped.
  Result Push(std::string_view text);
  // The held text, when the end came for another reason.
  std::string Flush();

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace hexad
