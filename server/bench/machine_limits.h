#pragma once

// What the machine can do at most, measured, and how long a piece of work would take at those
// limits. A kernel or an engine is judged by its share of them.

#include <string>

#include "kernels/thread_team.h"
#include "kernels/types.h"

namespace hexad {

// Operations count a multiplication and an addition as two. 0: not measured on this machine.
struct MachineLimits {
  int threads = 0;
  double read_bytes = 0;  // a second, from memory, four streams a thread on huge pages
  double fp32_ops = 0;    // a second, fused multiply-adds
  double int8_ops = 0;    // a second, dots of bytes into 32-bit sums
  // A second, dots of 4-bit weights with bytes: their products stay small enough for several of
  // them to be added in 16 bits, which an AVX2 machine does faster.
  double int4_ops = 0;
};

// Uses the instructions that kernels/cpu uses (AVX2 and FMA), else portable code for fp32 and
// memory alone. Takes about a second a limit and 512 MiB of memory for as long.
MachineLimits MeasureLimits(ThreadTeam& team);

// What something must at least move and compute.
struct Work {
  double bytes = 0;  // read from memory
  double fp32_ops = 0;
  double int8_ops = 0;
  double int4_ops = 0;

  double ops() const { return fp32_ops + int8_ops + int4_ops; }
};

// A product of weights in `type` with `values` weights and `tokens` rows.
void AddProduct(DType type, Activations activations, double values, double tokens, Work& work);

// The longer of the time that memory needs and the time that the arithmetic units need; limits that
// were not measured count as unlimited.
double LimitSeconds(const Work& work, const MachineLimits& limits);
// "memory" or "compute": which of the two it is.
const char* LimitName(const Work& work, const MachineLimits& limits);

std::string LimitsTable(const MachineLimits& limits);
std::string LimitsJson(const MachineLimits& limits);

}  // namespace hexad
