#pragma once

// `hexad serve`: the daemon in one process. Front ends, planner, replicas and KV; until SIGTERM.

#include <ostream>
#include <span>
#include <string>

#include "server/models/command.h"

namespace hexad {

// Returns the exit status: 0 after a drain, 1 when it could not start or the engine died, 2 for a
// wrong command line. Handles SIGTERM, SIGINT and SIGHUP of the process while it runs.
int ServeCommand(std::span<const std::string> args, const ModelsEnvironment& environment,
                 std::ostream& out, std::ostream& err);

}  // namespace hexad
