#pragma once

#include <string>

#include "absl/status/status.h"

namespace hexad {

// Whether `path` is a whole 64-bit shared object of this machine's kind: every segment lies within
// the file. NotFound: no such file. FailedPrecondition: something else than that, and what.
absl::Status CheckSharedObject(const std::string& path);

}  // namespace hexad
