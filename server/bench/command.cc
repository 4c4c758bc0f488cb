#include "server/bench/command.h"

#include "server/bench/engine_command.h"
#include "server/bench/kernels_command.h"
#include "server/bench/quality_command.h"
#include "server/bench/step_command.h"

namespace hexad {

int BenchCommand(std::span<const std::string> args, const BenchEnvironment& environment,
                 std::istream& in, std::ostream& out, std::ostream& err) {
  if (args.empty() || args.front().starts_with("-")) {
    return LoadBenchCommand(args, environment, out, err);
  }
  const std::string& what = args.front();
  const std::span<const std::string> rest = args.subspan(1);
  if (what == "engine") return EngineBenchCommand(rest, in, out, err);
  if (what == "kernels") return KernelsBenchCommand(rest, out, err);
  if (what == "quality") return QualityBenchCommand(rest, out, err);
  if (what == "step") return StepBenchCommand(rest, out, err);
  err << "hexad bench: there is no measurement \"" << what
      << "\": engine, kernels, quality, step; without a name it loads a server\n";
  return 2;
}

}  // namespace hexad
