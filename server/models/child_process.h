#pragma once

// Runs a program to its end: arguments as a list (no shell), standard input empty, output and
// errors captured, bounded in size and time. The child stays in our process group, so that Ctrl-C
// on a terminal ends both.

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hexad {

struct ChildOptions {
  std::chrono::milliseconds timeout{std::chrono::minutes(60)};
  // Set in the child on top of what this process has.
  std::vector<std::pair<std::string, std::string>> environment;
  // Each line of output as it comes.
  std::function<void(const std::string& line)> on_line;
  // Called about twice a second while waiting, when set.
  std::function<void()> on_tick;
};

struct ChildResult {
  int exit_code = 0;   // 128 + signal when one ended it
  std::string output;  // the last 16 KiB of both streams
};

// argv[0] is looked up in PATH. NotFound: no such program; DeadlineExceeded: it took longer than
// the timeout and was killed. Every other end is a result.
absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& argv,
                                     const ChildOptions& options);

}  // namespace hexad
