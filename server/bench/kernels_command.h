#pragma once

#include <ostream>
#include <span>
#include <string>

namespace hexad {

// `hexad bench kernels`: the ops of the CPU engine against the limits of the machine. Exit codes as
// of BenchCommand.
int KernelsBenchCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err);

}  // namespace hexad
