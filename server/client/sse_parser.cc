#include "server/client/sse_parser.h"

namespace hexad {

void SseParser::Line(const std::function<void(const SseEvent&)>& on_event) {
  std::string_view line = line_;
  if (first_line_ && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    if (has_data_) on_event(event_);
    event_ = SseEvent();
    has_data_ = false;
  } else if (line[0] != ':') {
    const size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (!value.empty() && value[0] == ' ') value.remove_prefix(1);
    if (field == "data") {
      if (has_data_) event_.data += '\n';
      event_.data += value;
      has_data_ = true;
    } else if (field == "event") {
      event_.type = value;
    }
  }
  line_.clear();
}

bool SseParser::Feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event) {
  for (size_t i = 0; i < bytes.size() && !overflow_; ++i) {
    const char c = bytes[i];
    const bool second_of_crlf = c == '\n' && after_cr_;
    after_cr_ = c == '\r';
    if (second_of_crlf) continue;
    if (c == '\n' || c == '\r') {
      Line(on_event);
    } else {
      line_ += c;
      overflow_ = line_.size() + event_.data.size() > max_event_bytes_;
    }
  }
  return !overflow_;
}

}  // namespace hexad
