#include "server/config/probe.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "server/config/values.h"

namespace hexad {
namespace {

// The value of "key : value" in a /proc file; empty when absent.
std::string ProcValue(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return "";
}

int64_t MemInfoBytes(const std::string& key) {
  int64_t kibibytes = 0;
  std::istringstream(ProcValue("/proc/meminfo", key)) >> kibibytes;
  return kibibytes * 1024;
}

// Of this process' own control group where it sees itself as the root, as in a container.
std::string ControlGroupValue(const char* name) {
  std::ifstream file(std::string("/sys/fs/cgroup/") + name);
  std::string line;
  std::getline(file, line);
  return line;
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  std::istringstream quota(ControlGroupValue("cpu.max"));
  double microseconds = 0;
  double period = 0;
  if (quota >> microseconds >> period && microseconds > 0 && period > 0) {
    cores = std::min(cores, static_cast<int>(std::ceil(microseconds / period)));
  }
  return std::max(cores, 1);
}

std::string Instructions() {
  const std::string flags = " " + ProcValue("/proc/cpuinfo", "flags") + " ";
  std::string found;
  for (const char* name : {"avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni",
                           "avx512_bf16", "amx_int8", "amx_bf16"}) {
    if (flags.find(std::string(" ") + name + " ") == std::string::npos) continue;
    found += (found.empty() ? "" : " ") + std::string(name);
  }
  return found;
}

}  // namespace

MachineProbe ProbeMachine() {
  MachineProbe probe;
  probe.cpu = ProcValue("/proc/cpuinfo", "model name");
  probe.usable_cores = UsableCores();
  probe.instructions = Instructions();
  probe.memory_bytes = MemInfoBytes("MemTotal");
  probe.available_memory_bytes = MemInfoBytes("MemAvailable");
  if (const auto limit = ParseInteger(ControlGroupValue("memory.max")); limit.has_value()) {
    probe.memory_bytes = std::min(probe.memory_bytes, *limit);
    const int64_t used = ParseInteger(ControlGroupValue("memory.current")).value_or(0);
    probe.available_memory_bytes =
        std::min(probe.available_memory_bytes, std::max<int64_t>(*limit - used, 0));
  }
  probe.gpu = "no GPU: this version has no CUDA module";
  return probe;
}

std::string FormatProbe(const MachineProbe& probe) {
  const auto mebibytes = [](int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  const auto known = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  return "cpu:          " + known(probe.cpu) + "\n" +
         "usable cores: " + std::to_string(probe.usable_cores) + "\n" +
         "instructions: " + known(probe.instructions) + "\n" +
         "memory:       " + mebibytes(probe.memory_bytes) + ", " +
         mebibytes(probe.available_memory_bytes) + " available\n" + "gpu:          " + probe.gpu +
         "\n";
}

}  // namespace hexad
