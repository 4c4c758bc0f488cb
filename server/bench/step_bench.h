#pragma once

// What a step costs the replica's loop when the device costs nothing: Plan, On(StepDone) and
// TakeEvents of a full batcher with two steps in flight, over many steps with block boundaries and
// block publication, and, when turns are short enough, with sequences that end and others that are
// admitted with a cached prefix in their place.
//
// Not thread-safe; takes seconds, most of them to fill the pools.

#include <cstdint>
#include <string>
#include <vector>

namespace hexad {

struct StepBenchOptions {
  int32_t running = 256;
  int32_t context_tokens = 131072;  // of each at the start
  int32_t steps = 4000;
  // Output tokens of a turn, after which a sequence ends and its next turn, with all of it as its
  // prefix and turn_prompt_tokens of its own, is admitted; 0: none ends.
  int32_t turn_tokens = 0;
  int32_t turn_prompt_tokens = 256;
};

// Microseconds of this thread's CPU time, so that a busy machine counts little.
struct StepBenchTimes {
  int64_t steps = 0;
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};

struct StepBenchReport {
  StepBenchOptions options;
  StepBenchTimes plan;
  StepBenchTimes apply;    // On(StepDone) and TakeEvents
  StepBenchTimes both;     // of every step
  StepBenchTimes quiet;    // `both` of the steps in which no sequence ended or was admitted
  StepBenchTimes changes;  // `both` of the others
  StepBenchTimes submit;   // On(Submit), which is between steps
  double rows_per_step = 0;
  int64_t ended = 0;
  int64_t admitted = 0;
  int64_t prompt_tokens = 0;  // of the sequences that ended
  int64_t cached_tokens = 0;  // those of them that were cached
};

StepBenchReport RunStepBench(const StepBenchOptions& options);

// The runs that are reported: 256 and 1,024 running with 128k contexts, without and with turns.
std::vector<StepBenchOptions> StandardStepBenches();

std::string StepBenchTableHeader();
std::string StepBenchTableRow(const StepBenchReport& report);
std::string StepBenchJson(const std::vector<StepBenchReport>& reports);

}  // namespace hexad
