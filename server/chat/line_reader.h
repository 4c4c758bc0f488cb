#pragma once

// Lines from a file descriptor, with Ctrl-C as an answer of its own.

#include <string>

namespace hexad {

class InterruptScope;

class LineReader final {
 public:
  enum class Result { kLine, kEnd, kInterrupted };
  // The descriptor stays the caller's.
  explicit LineReader(int fd) : fd_(fd) {}
  // Waits for a line (without its newline; a last one may lack it). `interrupt` may be null.
  // Lines above 1 MiB are cut.
  Result Read(InterruptScope* interrupt, std::string* line);

 private:
  int fd_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace hexad
