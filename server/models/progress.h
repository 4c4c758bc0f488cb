#pragma once

// What a pull says while it works: one bar that redraws itself on a terminal, a line for every
// tenth otherwise (logs, pipes).

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace hexad {

class Progress final {
 public:
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  // A line of its own, above the bar.
  void Line(std::string_view text);
  // Starts a bar. total_bytes is 0 when unknown. `already` bytes are there from an earlier try.
  void Begin(std::string label, int64_t total_bytes, int64_t already);
  void Update(int64_t done_bytes);
  void End();
  bool terminal() const { return terminal_; }

 private:
  void Draw(int64_t done_bytes);
  void ClearBar();

  std::ostream& out_;
  const bool terminal_;
  std::string label_;
  int64_t total_ = 0;
  int64_t already_ = 0;
  int64_t next_mark_ = 0;
  int64_t done_ = 0;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace hexad
