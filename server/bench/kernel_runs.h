#pragma once

// Runs the cases of `hexad bench kernels` and takes their times.

#include <functional>
#include <vector>

#include "kernels/thread_team.h"
#include "server/bench/kernel_cases.h"

namespace hexad {

struct KernelTiming {
  double best = 0;  // seconds of one call
  double median = 0;
  int64_t calls = 0;
};

// Called for each case, in order. Weights are made once for neighbours that differ in tokens only,
// and in as many copies as it takes that no cache holds the next one. seconds: to spend on a case,
// beside its preparation; three calls at least.
void RunKernels(const std::vector<KernelCase>& cases, double seconds, ThreadTeam& team,
                const std::function<void(const KernelCase&, const KernelTiming&)>& report);

}  // namespace hexad
