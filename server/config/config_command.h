#pragma once

// `hexad config print|schema|explain [FIELD]|check FILE|probe`, without the process around it.

#include <ostream>
#include <span>
#include <string>

namespace hexad {

// `args` are those after "config". Answers go to `out`, complaints to `err`.
// Returns the exit status: 0, 1 when a file or field is wrong, 2 for a wrong command line.
//   print [FILE]     the configuration with all defaults
//   schema           its JSON schema
//   explain [FIELD]  one field, or all
//   check FILE       every problem with its line and column
//   probe            what this machine has: cores, instructions, memory, GPU
int RunConfigCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err);

}  // namespace hexad
