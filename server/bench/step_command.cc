#include "server/bench/step_command.h"

#include <cstdint>
#include <vector>

#include "server/bench/bench_values.h"
#include "server/bench/step_bench.h"
#include "server/command_line/flags.h"

namespace hexad {
namespace {

constexpr int64_t kMostRunning = 65536;
constexpr int64_t kMostContext = int64_t{1} << 20;
constexpr int64_t kMostSteps = 100'000'000;
constexpr int64_t kMostTokens = int64_t{1}
                                << 28;  // running * context: some 10 GB of blocks and keys

constexpr char kExamples[] =
    "  hexad bench step                                   256 and 1,024 running, 128k contexts\n"
    "  hexad bench step --running 64 --context 8192 --steps 10000 --turn 32\n"
    "\n"
    "A time is this thread's CPU time of planning one step of a full batcher and applying its\n"
    "result, while the device costs nothing. With --turn a sequence ends after so many tokens, "
    "and\n"
    "its next turn is admitted with the same prefix.\n";

struct StepFlags {
  int64_t running = 0;
  int64_t context = 131072;
  int64_t steps = 4000;
  int64_t turn = 0;
  std::string json;

  FlagSet Declare() {
    FlagSet flags("hexad bench step [options]", "Measures what the scheduler spends on a step.",
                  kExamples);
    flags.Add("running", &running, "N", "sequences that decode; 0: the usual runs, and no others");
    flags.Add("context", &context, "N", "tokens of each at the start");
    flags.Add("steps", &steps, "N", "that are measured");
    flags.Add("turn", &turn, "N", "tokens after which a sequence ends; 0: none ends");
    flags.Add("json", &json, "FILE", "write the figures there too; -: to the output, no table");
    return flags;
  }
};

absl::StatusOr<std::vector<StepBenchOptions>> Runs(const StepFlags& flags) {
  if (flags.running == 0) return StandardStepBenches();
  StepBenchOptions options;
  if (flags.running < 1 || flags.running > kMostRunning || flags.steps < 1 ||
      flags.steps > kMostSteps || flags.context > kMostContext ||
      flags.context < options.turn_prompt_tokens || flags.turn < 0 || flags.turn > kMostContext ||
      flags.running * flags.context > kMostTokens) {
    return absl::InvalidArgumentError(
        "--running is 1 to 65536, --context 256 to 1048576, both multiplied at most 268435456, "
        "--steps 1 or more, --turn 0 or more");
  }
  options.running = static_cast<int32_t>(flags.running);
  options.context_tokens = static_cast<int32_t>(flags.context);
  options.steps = static_cast<int32_t>(flags.steps);
  options.turn_tokens = static_cast<int32_t>(flags.turn);
  return std::vector<StepBenchOptions>{options};
}

absl::Status Run(const StepFlags& flags, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<std::vector<StepBenchOptions>> runs = Runs(flags);
  if (!runs.ok()) return runs.status();
  const bool table = flags.json != "-";
  if (table) out << StepBenchTableHeader() << std::flush;
  std::vector<StepBenchReport> reports;
  for (const StepBenchOptions& options : *runs) {
    err << options.running << " running with " << options.context_tokens << " tokens\n";
    reports.push_back(RunStepBench(options));
    if (table) out << StepBenchTableRow(reports.back()) << std::flush;
  }
  const std::string json = StepBenchJson(reports);
  if (!table) out << json;
  if (table && !flags.json.empty()) return WriteTextFile(flags.json, json);
  return absl::OkStatus();
}

}  // namespace

int StepBenchCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  StepFlags typed;
  return RunBench("step", typed.Declare(), args, out, err,
                  [&](std::span<const std::string> positional) -> absl::Status {
                    absl::Status status = RefusePositional(positional);
                    return status.ok() ? Run(typed, out, err) : status;
                  });
}

}  // namespace hexad
