#pragma once

#include <istream>
#include <ostream>
#include <span>
#include <string>

namespace hexad {

// `hexad bench engine`: tokens a second of a model in this process. Exit codes as of BenchCommand.
int EngineBenchCommand(std::span<const std::string> args, std::istream& in, std::ostream& out,
                       std::ostream& err);

}  // namespace hexad
