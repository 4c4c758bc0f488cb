#pragma once

// Philox4x32-10, a counter-based random generator: Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. A pure function of (key, counter), so a token's draw
// depends on the request's seed and the token's position and on nothing else.

#include <array>
#include <cstdint>

namespace hexad {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform in [0, 1), a multiple of 2^-53.
double UniformAt(uint64_t seed, uint64_t position);

}  // namespace hexad
