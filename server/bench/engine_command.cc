#include "server/bench/engine_command.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/bench/bench_values.h"
#include "server/bench/engine_bench.h"
#include "server/client/json_text.h"
#include "server/command_line/flags.h"

namespace hexad {
namespace {

constexpr char kExamples[] =
    "  hexad bench engine model.gguf                       prefill, decode, batch 8, depth 4096\n"
    "  hexad bench engine model.gguf decode:batch=32 --limits\n"
    "  hexad bench engine model.gguf decode:tokens=32:depth=4096 prefill:tokens=2048\n"
    "  hexad bench engine model.gguf decode:batch=8:depth=512:prompt=own --json -\n"
    "\n"
    "A test is decode or prefill and fields after colons: tokens=N (64; 512 of a prefill) that "
    "one\n"
    "repetition computes of each sequence; depth=N tokens that lie before them, computed once and\n"
    "not timed; batch=N sequences that decode together; prompt=shared (one depth for all) or own.\n"
    "\n"
    "--interactive reads commands, so that another program can run tests by turns:\n"
    "  prepare TEST    allocate, compute the depth; answers {\"prepared\": ..., \"work\": {...}}\n"
    "  run             one repetition; answers {\"test\": ..., \"tokens_per_second\": ...}\n"
    "Between commands the process sleeps. It ends with its input.\n";

struct EngineFlags {
  int64_t threads = 0;
  std::string activations = "int8";
  std::string kv = "f16";
  int64_t chunk = 512;
  int64_t repeats = 5;
  bool limits = false;
  bool pin = false;
  bool interactive = false;
  std::string json;

  FlagSet Declare() {
    FlagSet flags("hexad bench engine MODEL.gguf [TEST...]",
                  "Measures prefill and decode of a model in this process, without a server.",
                  kExamples);
    flags.Add("threads", &threads, "N", "that compute; 0: all CPUs");
    flags.Add("activations", &activations, "TYPE", "that meet quantised weights: int8 or f32");
    flags.Add("kv", &kv, "TYPE", "of keys and values: f16, f32 or q8_0");
    flags.Add("chunk", &chunk, "N", "tokens of a prefill in one step");
    flags.Add("repeats", &repeats, "N", "repetitions of each test, after one that does not count");
    flags.Add("limits", &limits, "measure the machine first and show the share of its limits");
    flags.Add("pin", &pin, "tie the team's threads to CPUs");
    flags.Add("interactive", &interactive, "run what is asked for on the input");
    flags.Add("json", &json, "FILE", "a line a sample there; -: to the output, without a table");
    return flags;
  }
};

std::string SampleJson(const EngineTestSpec& spec, const EngineSample& sample) {
  return absl::StrFormat(
      "{\"test\":\"%s\",\"seconds\":%.6f,\"tokens_per_second\":%.3f,\"cpu_seconds\":%.4f}\n",
      EngineTestName(spec), sample.seconds, sample.tokens_per_second, sample.cpu_seconds);
}

std::string WorkJson(const Work& work) {
  return absl::StrFormat("{\"bytes\":%.6g,\"fp32_ops\":%.6g,\"int8_ops\":%.6g,\"int4_ops\":%.6g}",
                         work.bytes, work.fp32_ops, work.int8_ops, work.int4_ops);
}

std::string ErrorJson(const absl::Status& status) {
  return "{\"error\":" + JsonString(std::string(status.message())) + "}\n";
}

int RunInteractive(EngineBench& bench, std::istream& in, std::ostream& out) {
  out << "{\"ready\":" << JsonString(bench.model().spec.name) << "}\n" << std::flush;
  std::optional<EngineTestSpec> spec;
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("prepare ", 0) == 0) {
      const absl::StatusOr<EngineTestSpec> parsed = ParseEngineTest(line.substr(8));
      absl::Status status = parsed.status();
      if (status.ok()) status = bench.Prepare(*parsed);
      if (status.ok()) {
        spec = *parsed;
        out << "{\"prepared\":\"" << EngineTestName(*spec)
            << "\",\"numerics\":" << JsonString(bench.shape()->numerics_id)
            << ",\"work\":" << WorkJson(bench.WorkOf(*spec)) << "}\n";
      } else {
        spec.reset();
        out << ErrorJson(status);
      }
    } else if (line == "run" && spec) {
      const absl::StatusOr<EngineSample> sample = bench.Run();
      out << (sample.ok() ? SampleJson(*spec, *sample) : ErrorJson(sample.status()));
    } else {
      out << ErrorJson(absl::InvalidArgumentError("commands are prepare TEST and, then, run"));
    }
    out << std::flush;
  }
  return 0;
}

// One line of the table.
std::string TestRow(const EngineTestSpec& spec, const std::vector<double>& rates, const Work& work,
                    const std::optional<MachineLimits>& limits) {
  const double tokens = static_cast<double>(spec.tokens) * spec.batch;
  const double median = Median(rates);
  std::string row = absl::StrFormat("%-44s %10.1f %10.1f", EngineTestName(spec), median,
                                    *std::max_element(rates.begin(), rates.end()));
  if (limits) {
    row += absl::StrFormat(" %9.1f %6.0f %% of %s", tokens / LimitSeconds(work, *limits),
                           100 * LimitSeconds(work, *limits) * median / tokens,
                           LimitName(work, *limits));
  }
  return row + "\n";
}

absl::StatusOr<EngineBenchOptions> MakeOptions(const EngineFlags& flags) {
  EngineBenchOptions options;
  const absl::StatusOr<int> threads = ParseThreads(flags.threads);
  if (!threads.ok()) return threads.status();
  options.threads = *threads;
  options.pin_threads = flags.pin;
  const absl::StatusOr<Activations> activations = ParseActivations(flags.activations);
  if (!activations.ok()) return activations.status();
  options.activations = *activations;
  const absl::StatusOr<DType> kv = ParseDType(flags.kv);
  if (!kv.ok()) return kv.status();
  options.kv_type = *kv;
  if (flags.chunk < 1 || flags.chunk > 65536 || flags.repeats < 1 || flags.repeats > 100000) {
    return absl::InvalidArgumentError("--chunk is 1 to 65536, --repeats 1 to 100000");
  }
  options.chunk_tokens = static_cast<int32_t>(flags.chunk);
  return options;
}

absl::Status RunTests(EngineBench& bench, const std::vector<EngineTestSpec>& specs,
                      const EngineFlags& flags, const std::optional<MachineLimits>& limits,
                      std::ostream& out, std::ostream& err) {
  const bool table = flags.json != "-";
  std::string lines;
  if (table) {
    out << absl::StrFormat("%-44s %10s %10s%s\n", "tokens a second", "median", "best",
                           limits ? "     limit  share" : "");
  }
  for (const EngineTestSpec& spec : specs) {
    err << "preparing " << EngineTestName(spec) << "\n";
    absl::Status status = bench.Prepare(spec);
    if (!status.ok()) return status;
    const absl::StatusOr<EngineSample> warm = bench.Run();
    if (!warm.ok()) return warm.status();
    std::vector<double> rates;
    for (int64_t i = 0; i < flags.repeats; ++i) {
      const absl::StatusOr<EngineSample> sample = bench.Run();
      if (!sample.ok()) return sample.status();
      rates.push_back(sample->tokens_per_second);
      const std::string line = SampleJson(spec, *sample);
      if (table) {
        lines += line;
      } else {
        out << line << std::flush;
      }
    }
    if (table) out << TestRow(spec, rates, bench.WorkOf(spec), limits) << std::flush;
  }
  if (table && !flags.json.empty()) return WriteTextFile(flags.json, lines);
  return absl::OkStatus();
}

}  // namespace

int EngineBenchCommand(std::span<const std::string> args, std::istream& in, std::ostream& out,
                       std::ostream& err) {
  EngineFlags typed;
  const FlagSet flags = typed.Declare();
  const auto fail = [&](const absl::Status& status) { return FailBench("engine", status, err); };
  const absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return fail(parsed.status());
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  if (parsed->positional.empty()) {
    return fail(absl::InvalidArgumentError("say which model: hexad bench engine MODEL.gguf"));
  }
  std::vector<std::string> tests(parsed->positional.begin() + 1, parsed->positional.end());
  if (tests.empty()) tests = {"prefill", "decode", "decode:batch=8", "decode:tokens=32:depth=4096"};
  std::vector<EngineTestSpec> specs;
  for (const std::string& test : tests) {
    const absl::StatusOr<EngineTestSpec> spec = ParseEngineTest(test);
    if (!spec.ok()) return fail(spec.status());
    specs.push_back(*spec);
  }
  const absl::StatusOr<EngineBenchOptions> options = MakeOptions(typed);
  if (!options.ok()) return fail(options.status());

  const absl::StatusOr<std::shared_ptr<const ModelFile>> model =
      OpenModelFile(parsed->positional[0]);
  if (!model.ok()) return fail(model.status());
  std::optional<MachineLimits> limits;
  if (typed.limits) {
    err << "measuring the machine\n";
    ThreadTeam team(options->threads, options->pin_threads);
    limits = MeasureLimits(team);
    if (typed.json != "-") out << LimitsTable(*limits);
  }
  absl::StatusOr<EngineBench> bench = EngineBench::Make(*model, *options);
  if (!bench.ok()) return fail(bench.status());
  if (typed.interactive) return RunInteractive(*bench, in, out);
  const absl::Status status = RunTests(*bench, specs, typed, limits, out, err);
  return status.ok() ? 0 : fail(status);
}

}  // namespace hexad
