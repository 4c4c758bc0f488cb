#pragma once

// Sums up a run: percentiles, throughput, errors by kind; as a table and as JSON. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/bench/load_generator.h"

namespace hexad {

struct LatencySummary {
  size_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;  // seconds
};
// Percentiles interpolate linearly between order statistics (numpy's default).
LatencySummary Summarise(std::vector<double> values);

struct BenchReport {
  double seconds = 0;
  int64_t sent = 0;
  int64_t completed = 0;
  int64_t failed = 0;
  bool interrupted = false;
  bool counted_by_usage = true;  // false: some answers had no usage, their pieces were counted
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  // Completed requests only. TTFT: start to first text. TPOT: (end - first text) / (tokens - 1).
  // ITL: gaps between pieces of text. End to end: start to end.
  LatencySummary ttft, tpot, itl, e2e;
  struct ErrorSum {
    int64_t count = 0;
    std::string example;
  };
  std::map<std::string, ErrorSum> errors;  // by kind

  double RequestRate() const { return seconds > 0 ? static_cast<double>(completed) / seconds : 0; }
  double OutputRate() const {
    return seconds > 0 ? static_cast<double>(output_tokens) / seconds : 0;
  }
};

BenchReport MakeReport(const LoadResult& result);
std::string ReportTable(const BenchReport& report);
// Milliseconds in fields that end in _ms. `settings_json` is a JSON object, copied in.
std::string ReportJson(const BenchReport& report, const std::string& settings_json);

}  // namespace hexad
