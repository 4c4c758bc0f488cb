#pragma once

// Scripts from seeds, and the search for a small one that still fails.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/scheduler/batch/script.h"

namespace hexad::testing {

// Small pools, shared prefixes, several tenants, groups and block sizes, cancels and stops at any
// point, reordering, and in some seeds failed steps and a drain. The same seed, the same script.
Script RandomScript(uint64_t seed);

// Runs the script in a child process, since a broken invariant aborts. What is wrong, or nullopt.
std::optional<std::string> RunApart(const Script& script);

// A script that fails too, with fewer lines, requests and tokens.
Script Shrink(Script script, const std::function<bool(const Script&)>& fails);

struct SeedFailure {
  uint64_t seed = 0;
  std::string what;
  std::string log_path;  // the shrunk script; HEXAD_REPLAY=path plays it
};
// The first of the seeds [first, first + count) that fails.
std::optional<uint64_t> FirstFailingSeed(uint64_t first, uint64_t count);
// The same, with a small script that fails too.
std::optional<SeedFailure> RunSeeds(uint64_t first, uint64_t count);

}  // namespace hexad::testing
