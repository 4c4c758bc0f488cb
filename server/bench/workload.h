#pragma once

// What a load consists of: request bodies and arrival times, a pure function of the options and
// the seed. Request i is the same whatever came before it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/bench/random.h"

namespace hexad {

// One line of a data set: {"prompt": "..."} or {"messages": [...]}, and optionally "max_tokens" (or
// "output_tokens").
struct DatasetEntry {
  std::string messages_json;  // a JSON array
  int64_t max_tokens = 0;     // 0: the workload's distribution
};
// Errors name the line. Blank lines are skipped; at most 1 Mi entries.
absl::StatusOr<std::vector<DatasetEntry>> ParseDataset(std::string_view jsonl,
                                                       std::string_view origin);

struct WorkloadOptions {
  std::string model;
  LengthDistribution input_tokens;
  LengthDistribution output_tokens;
  int64_t prefix_tokens = 0;  // a system message that all requests of a group share
  int64_t prefix_groups = 1;
  std::vector<DatasetEntry> dataset;  // empty: made-up prompts
  std::optional<double> temperature;
  bool stream = true;
  bool ask_usage = true;    // stream_options.include_usage
  bool ignore_eos = false;  // an extension of vLLM that others know too
  uint64_t seed = 1;
};

class Workload final {
 public:
  explicit Workload(WorkloadOptions options) : options_(std::move(options)) {}
  // The JSON body of request `index`.
  std::string Body(uint64_t index) const;

 private:
  WorkloadOptions options_;
};

// Arrival times of an open loop, in seconds from its start: fixed gaps, or exponential ones (a
// Poisson process) with mean 1 / rate.
class Arrivals final {
 public:
  Arrivals(double rate, bool poisson, uint64_t seed)
      : rate_(rate), poisson_(poisson), random_(seed) {}
  double Next();

 private:
  double rate_;
  bool poisson_;
  BenchRandom random_;
  uint64_t count_ = 0;
  double time_ = 0;
};

}  // namespace hexad
