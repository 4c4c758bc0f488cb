#pragma once

// `hexad bench` without the name of another measurement: a load generator for any
// OpenAI-compatible server.

#include <ostream>
#include <span>
#include <string>

namespace hexad {

struct BenchEnvironment {
  std::string api_key;    // HEXAD_API_KEY, else OPENAI_API_KEY
  bool terminal = false;  // `err` is a terminal: live progress, Ctrl-C ends the run with a report
};

// The table goes to `out`, progress and errors to `err`. Exit codes: 0 (every request went well),
// 1 (some failed, or no server), 2 (misused).
int LoadBenchCommand(std::span<const std::string> args, const BenchEnvironment& environment,
                     std::ostream& out, std::ostream& err);

}  // namespace hexad
