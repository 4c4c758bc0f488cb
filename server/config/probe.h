#pragma once

// What this machine offers: for `hexad config probe` and the log's first lines.

#include <cstdint>
#include <string>

namespace hexad {

struct MachineProbe {
  std::string cpu;           // the model's name
  int usable_cores = 0;      // of this process, after affinity and the control group's quota
  std::string instructions;  // "avx2 fma ..."; empty: none of those that matter
  int64_t memory_bytes = 0;  // of the machine, or the control group's limit if lower
  int64_t available_memory_bytes = 0;  // now
  std::string gpu;                     // "no GPU" and why
};

MachineProbe ProbeMachine();

// A line a fact.
std::string FormatProbe(const MachineProbe& probe);

}  // namespace hexad
