#pragma once

#include <cstdint>

namespace hexad {

// Which phases a worker computes.
enum class WorkerRole : uint8_t { kBoth, kPrefill, kDecode };

}  // namespace hexad
