// What a step costs the replica's loop: see server/bench/step_bench.h. Not a test.
//
//     step_bench [--json FILE] [RUNNING [CONTEXT [STEPS [TURN]]]]
//
// Without RUNNING: the standard runs.

#include "server/bench/step_bench.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hexad {
namespace {

int Main(int argc, char** argv) {
  std::string json_path;
  if (argc > 2 && std::strcmp(argv[1], "--json") == 0) {
    json_path = argv[2];
    argc -= 2;
    argv += 2;
  }
  std::vector<StepBenchOptions> runs = StandardStepBenches();
  if (argc > 1) {
    StepBenchOptions options;
    int32_t* const fields[] = {&options.running, &options.context_tokens, &options.steps,
                               &options.turn_tokens};
    for (int i = 1; i < argc && i <= 4; ++i) *fields[i - 1] = std::atoi(argv[i]);
    if (options.running < 1 || options.context_tokens < options.turn_prompt_tokens ||
        options.steps < 1 || options.turn_tokens < 0) {
      std::fprintf(stderr, "step_bench [--json FILE] [RUNNING [CONTEXT [STEPS [TURN]]]]\n");
      return 2;
    }
    runs = {options};
  }
  std::fputs(StepBenchTableHeader().c_str(), stdout);
  std::vector<StepBenchReport> reports;
  for (const StepBenchOptions& options : runs) {
    reports.push_back(RunStepBench(options));
    std::fputs(StepBenchTableRow(reports.back()).c_str(), stdout);
    std::fflush(stdout);
  }
  if (json_path.empty()) return 0;
  std::FILE* file = std::fopen(json_path.c_str(), "w");
  const std::string json = StepBenchJson(reports);
  const bool written = file && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (!file || std::fclose(file) != 0 || !written) {
    std::fprintf(stderr, "step_bench: cannot write %s\n", json_path.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hexad

int main(int argc, char** argv) { return hexad::Main(argc, argv); }
