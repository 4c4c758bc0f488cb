#pragma once

#include <ostream>
#include <span>
#include <string>

namespace hexad {

// `hexad bench step`: what planning costs, see step_bench.h. Exit codes as of BenchCommand.
int StepBenchCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err);

}  // namespace hexad
