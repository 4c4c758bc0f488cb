#pragma once

// The innermost loops by which the limits of a core are measured: in registers alone, or a reader
// that does nothing with what it reads.

#include <cstddef>
#include <cstdint>

namespace hexad {

struct PeakLoop {
  void (*run)(int64_t rounds) = nullptr;  // null: not on this CPU
  double ops_per_round = 0;               // a multiply-add is two
};

struct PeakLoops {
  PeakLoop fp32;
  PeakLoop int8;
  PeakLoop int4;
};

// For the CPU that runs this.
PeakLoops BestPeakLoops();

// Reads all of it, a quarter in each of four streams. bytes: a multiple of 512.
void ReadFourStreams(const std::byte* data, int64_t bytes);

}  // namespace hexad
