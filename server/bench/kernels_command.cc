#include "server/bench/kernels_command.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "server/bench/bench_values.h"
#include "server/bench/kernel_cases.h"
#include "server/bench/kernel_runs.h"
#include "server/client/json_text.h"
#include "server/command_line/flags.h"

namespace hexad {
namespace {

std::string Examples() {
  std::string text =
      "  hexad bench kernels                                     the usual ones, about a minute\n"
      "  hexad bench kernels --op ffn-gated --format Q4_K --tokens all --model llama1b\n"
      "  hexad bench kernels --op attention-decode,attention-cascade --model all --tokens 1,8\n"
      "  hexad bench kernels --limits-only                       what the machine can do\n"
      "  hexad bench kernels --model all --format all --tokens all --json kernels.json\n"
      "\n"
      "The machine's limits are measured first, in about three seconds. A line's share is the "
      "time\n"
      "that they allow for its bytes (weights, keys and values) or operations, whichever takes\n"
      "longer, of the median time. Ops that work in the caches have no share. Lists are\n"
      "comma-separated; all is everything.\n"
      "\n"
      "Ops:\n";
  for (int i = 0; i < kKernelOps; ++i) {
    const auto op = static_cast<KernelOp>(i);
    text += absl::StrFormat("  %-18s %s\n", KernelOpName(op), KernelOpAbout(op));
  }
  text += "\nModels:\n";
  for (const KernelModel& model : KernelModels()) {
    text += absl::StrFormat("  %-18s hidden %d, ffn %d, heads %d/%d of %d, vocabulary %d\n",
                            model.name, model.hidden, model.ffn, model.heads, model.kv_heads,
                            model.head_dim, model.vocabulary);
  }
  return text;
}

struct KernelsFlags {
  KernelFilter filter;
  int64_t threads = 0;
  int64_t milliseconds = 100;
  bool pin = false;
  bool limits = true;
  bool limits_only = false;
  std::string json;

  FlagSet Declare() {
    FlagSet flags("hexad bench kernels [options]",
                  "Measures the ops of the CPU engine, one by one, at the sizes of known models.",
                  Examples());
    flags.Add("op", &filter.ops, "LIST", "which ops, see below");
    flags.Add("model", &filter.models, "LIST", "whose sizes, see below");
    flags.Add("format", &filter.formats, "LIST", "of weights, as GGUF files name them");
    flags.Add("activations", &filter.activations, "LIST", "that meet quantised weights: int8, f32");
    flags.Add("kv", &filter.kv, "LIST", "types of keys and values: F16, F32, Q8_0");
    flags.Add("tokens", &filter.tokens, "LIST", "rows of a product, sequences of a decode");
    flags.Add("threads", &threads, "N", "that compute; 0: all CPUs");
    flags.Add("milliseconds", &milliseconds, "N", "to spend on a line");
    flags.Add("pin", &pin, "tie the team's threads to CPUs");
    flags.Add("limits", &limits, "measure the machine first (--no-limits: no shares)");
    flags.Add("limits-only", &limits_only, "and nothing else");
    flags.Add("json", &json, "FILE", "write all figures there too; -: to the output, no table");
    return flags;
  }
};

std::string ResultRow(const KernelCase& one, const KernelTiming& time,
                      const std::optional<MachineLimits>& limits) {
  const Work work = WorkOf(one);
  const char* activations = IsProduct(one.op) ? ActivationsName(one.activations) : "";
  std::string row =
      absl::StrFormat("%-18s %-12s %-6s %-4s %5d %10.1f %10.1f %7.1f %8.1f", KernelOpName(one.op),
                      one.model->name, one.op == KernelOp::kTeam ? "" : Info(one.format).name,
                      activations, one.tokens, time.median * 1e6, time.best * 1e6,
                      work.bytes / time.median / 1e9, work.ops() / time.median / 1e9);
  if (limits && !WorksInCaches(one.op)) {
    row += absl::StrFormat(" %5.0f %% of %s", 100 * LimitSeconds(work, *limits) / time.median,
                           LimitName(work, *limits));
  }
  return row + "\n";
}

std::string ResultJson(const KernelCase& one, const KernelTiming& time,
                       const std::optional<MachineLimits>& limits) {
  const Work work = WorkOf(one);
  std::string json = absl::StrFormat(
      "{\"op\":\"%s\",\"model\":\"%s\",\"format\":\"%s\",\"activations\":\"%s\",\"tokens\":%d,"
      "\"median_us\":%.3f,\"best_us\":%.3f,\"calls\":%d,\"bytes\":%.0f,\"ops\":%.0f",
      KernelOpName(one.op), one.model->name, Info(one.format).name,
      ActivationsName(one.activations), one.tokens, time.median * 1e6, time.best * 1e6, time.calls,
      work.bytes, work.ops());
  if (limits && !WorksInCaches(one.op)) {
    json += absl::StrFormat(",\"share\":%.4f,\"limit\":\"%s\"",
                            LimitSeconds(work, *limits) / time.median, LimitName(work, *limits));
  }
  return json + "}";
}

absl::Status Run(const KernelsFlags& flags, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<int> threads = ParseThreads(flags.threads);
  if (!threads.ok()) return threads.status();
  if (flags.milliseconds < 1 || flags.milliseconds > 60000) {
    return absl::InvalidArgumentError("--milliseconds is 1 to 60000");
  }
  const absl::StatusOr<std::vector<KernelCase>> cases = SelectKernels(flags.filter);
  if (!cases.ok()) return cases.status();
  for (const KernelCase& one : *cases) {
    const bool stores =
        one.op == KernelOp::kRopeStore || (!IsProduct(one.op) && !WorksInCaches(one.op));
    const KvBlockShape layout{one.format, one.model->kv_heads, one.model->head_dim, kKvTile};
    if (stores && !layout.Valid()) {
      return absl::InvalidArgumentError(std::string("--kv: keys and values are never ") +
                                        Info(one.format).name);
    }
  }
  const bool table = flags.json != "-";
  ThreadTeam team(*threads, flags.pin);
  std::optional<MachineLimits> limits;
  if (flags.limits || flags.limits_only) {
    err << "measuring the machine\n";
    limits = MeasureLimits(team);
    if (table) out << LimitsTable(*limits);
  }
  std::string results;
  if (!flags.limits_only) {
    if (table) {
      out << absl::StrFormat("kernels %s, %s; %d threads\n\n",
                             std::string(KernelSetName(Activations::kInt8)),
                             std::string(KernelSetName(Activations::kF32)), team.threads());
      out << absl::StrFormat("%-18s %-12s %-6s %-4s %5s %10s %10s %7s %8s%s\n", "op", "model",
                             "format", "with", "rows", "median us", "best us", "GB/s", "G op/s",
                             limits ? "  share of limit" : "");
    }
    size_t done = 0;
    RunKernels(*cases, static_cast<double>(flags.milliseconds) / 1e3, team,
               [&](const KernelCase& one, const KernelTiming& time) {
                 ++done;
                 if (table) {
                   out << ResultRow(one, time, limits) << std::flush;
                 } else {
                   err << "\r" << done << " of " << cases->size() << std::flush;
                 }
                 results += (results.empty() ? "" : ",\n  ") + ResultJson(one, time, limits);
               });
    if (!table) err << "\n";
  }
  if (flags.json.empty()) return absl::OkStatus();
  const std::string json = "{\"kernels\":" + JsonString(KernelSetName(Activations::kInt8)) +
                           ",\"limits\":" + (limits ? LimitsJson(*limits) : "null") +
                           ",\n\"results\":[" + results + "]}\n";
  if (table) return WriteTextFile(flags.json, json);
  out << json;
  return absl::OkStatus();
}

}  // namespace

int KernelsBenchCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  KernelsFlags typed;
  return RunBench("kernels", typed.Declare(), args, out, err,
                  [&](std::span<const std::string> positional) -> absl::Status {
                    absl::Status status = RefusePositional(positional);
                    return status.ok() ? Run(typed, out, err) : status;
                  });
}

}  // namespace hexad
