#pragma once

// `hexad bench`: which measurement. The first argument names one (engine, kernels, quality, step);
// without it a server is loaded.

#include <istream>
#include <ostream>
#include <span>
#include <string>

#include "server/bench/load_command.h"

namespace hexad {

// Tables go to `out`, progress and errors to `err`; `in` is read by `engine --interactive` alone.
// Exit codes: 0, 1 (something failed), 2 (misused).
int BenchCommand(std::span<const std::string> args, const BenchEnvironment& environment,
                 std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace hexad
