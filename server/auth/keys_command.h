#pragma once

// `hexad keys new --tenant X [--name Y]`, without the process around it.

#include <ostream>
#include <span>
#include <string>

namespace hexad {

// `args` are those after "keys". Prints a new key once and the line to add to the keys file.
// Returns the exit status: 0, 1 for a bad name, 2 for a wrong command line.
int RunKeysCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err);

}  // namespace hexad
