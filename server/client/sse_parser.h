#pragma once

// Server-sent events (WHATWG HTML, "Parsing an event stream"), incremental: bytes may come split
// anywhere. Pure; bounded memory.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hexad {

struct SseEvent {
  std::string type;  // empty: none was given
  std::string data;  // the data lines, joined by \n
};

class SseParser final {
 public:
  explicit SseParser(size_t max_event_bytes = size_t{4} << 20)
      : max_event_bytes_(max_event_bytes) {}

  // Calls `on_event` for every event that is complete. False: an event is larger than allowed;
  // nothing more is read then. An event that no blank line ends is never given.
  bool Feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event);

 private:
  void Line(const std::function<void(const SseEvent&)>& on_event);

  size_t max_event_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
  bool overflow_ = false;
};

}  // namespace hexad
