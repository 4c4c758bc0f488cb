#include "server/bench/load_command.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "server/bench/load_generator.h"
#include "server/bench/report.h"
#include "server/client/interrupt.h"
#include "server/client/json_text.h"
#include "server/command_line/flags.h"

namespace hexad {
namespace {

constexpr int64_t kMaxDatasetBytes = int64_t{1} << 30;

constexpr char kExamples[] =
    "  hexad bench                                    100 requests, 8 at a time\n"
    "  hexad bench --concurrency 32 --duration 60s    closed loop for a minute\n"
    "  hexad bench --rate 5 --duration 2m             open loop, Poisson arrivals\n"
    "  hexad bench --rate 5 --arrivals fixed --input-tokens lognormal:512:0.8\n"
    "  hexad bench --prefix-tokens 2000 --prefix-groups 4     shared prefixes\n"
    "  hexad bench --dataset prompts.jsonl --json result.json\n"
    "  hexad bench --url https://example.org --api-key KEY --model NAME\n"
    "\n"
    "A line of a data set is {\"prompt\": \"...\"} or {\"messages\": [...]}, with an optional\n"
    "\"max_tokens\". Made-up prompts count a common word as one token. In an open loop times\n"
    "count from when a request should have gone out.\n"
    "\n"
    "Without a server, each with --help:\n"
    "  hexad bench engine MODEL.gguf         prefill and decode of a model in this process\n"
    "  hexad bench kernels                   its ops one by one, against the machine's limits\n"
    "  hexad bench quality MODEL.gguf TEXT   perplexity by activations and KV type\n"
    "  hexad bench step                      what planning a step costs\n";

// The options as typed, before they are checked.
struct BenchFlags {
  std::string url = "http://127.0.0.1:8000";
  std::string model = "auto";
  std::string api_key;
  int64_t requests = 0;
  std::string duration;
  int64_t concurrency = 0;
  double rate = 0;
  std::string arrivals = "poisson";
  int64_t seed = 1;
  std::string input_tokens = "128";
  std::string output_tokens = "64";
  int64_t prefix_tokens = 0;
  int64_t prefix_groups = 1;
  std::string dataset;
  std::string temperature;
  bool stream = true;
  bool usage = true;
  bool ignore_eos = false;
  std::string timeout = "10m";
  std::string json;

  FlagSet Declare() {
    FlagSet flags("hexad bench [options]",
                  "Sends requests to an OpenAI-compatible server and measures the answers.",
                  kExamples);
    flags.Add("url", &url, "URL", "the server");
    flags.Add("model", &model, "NAME", "a model of it; auto: its first");
    flags.Add("api-key", &api_key, "KEY", "else HEXAD_API_KEY or OPENAI_API_KEY");
    flags.Add("requests", &requests, "N", "how many; 0: 100, or until --duration is over");
    flags.Add("duration", &duration, "TIME", "send nothing new after it (30s, 5m)");
    flags.Add("concurrency", &concurrency, "N",
              "at a time; 0: 8 in a closed loop, no cap in an open one");
    flags.Add("rate", &rate, "R", "requests a second (open loop); 0: closed loop");
    flags.Add("arrivals", &arrivals, "KIND", "of an open loop: poisson or fixed");
    flags.Add("seed", &seed, "N", "of prompts, lengths and arrivals");
    flags.Add("input-tokens", &input_tokens, "LENGTH",
              "N, uniform:LOW:HIGH, normal:MEAN:DEV, lognormal:MEDIAN:SIGMA, exponential:MEAN");
    flags.Add("output-tokens", &output_tokens, "LENGTH", "max_tokens, likewise");
    flags.Add("prefix-tokens", &prefix_tokens, "N", "a system message shared within a group");
    flags.Add("prefix-groups", &prefix_groups, "N", "how many different ones");
    flags.Add("dataset", &dataset, "FILE", "prompts from a JSONL file");
    flags.Add("temperature", &temperature, "T", "not given: the server decides");
    flags.Add("stream", &stream, "stream the answers (--no-stream: whole answers)");
    flags.Add("usage", &usage, "ask streams for usage (--no-usage where a server refuses)");
    flags.Add("ignore-eos", &ignore_eos, "ask for all of --output-tokens, where a server can");
    flags.Add("timeout", &timeout, "TIME", "of one request");
    flags.Add("json", &json, "FILE", "write the result there too; -: to the output");
    return flags;
  }

  std::string SettingsJson() const {
    std::string text = "{\"url\":" + JsonString(url) + ",\"model\":" + JsonString(model);
    text += ",\"requests\":" + std::to_string(requests);
    text += ",\"duration\":" + JsonString(duration);
    text += ",\"concurrency\":" + std::to_string(concurrency);
    char number[40];
    std::snprintf(number, sizeof(number), "%g", rate);
    text += std::string(",\"rate\":") + number + ",\"arrivals\":" + JsonString(arrivals);
    text += ",\"seed\":" + std::to_string(seed);
    text += ",\"input_tokens\":" + JsonString(input_tokens);
    text += ",\"output_tokens\":" + JsonString(output_tokens);
    text += ",\"prefix_tokens\":" + std::to_string(prefix_tokens);
    text += ",\"prefix_groups\":" + std::to_string(prefix_groups);
    text += ",\"dataset\":" + JsonString(dataset);
    return text + ",\"stream\":" + (stream ? "true" : "false") + "}";
  }
};

absl::StatusOr<LoadOptions> MakeLoadOptions(const BenchFlags& flags) {
  LoadOptions load;
  if (flags.requests < 0 || flags.concurrency < 0 || flags.rate < 0) {
    return absl::InvalidArgumentError("--requests, --concurrency and --rate are 0 or more");
  }
  if (flags.arrivals != "poisson" && flags.arrivals != "fixed") {
    return absl::InvalidArgumentError("--arrivals is poisson or fixed, not \"" + flags.arrivals +
                                      "\"");
  }
  if (!flags.duration.empty()) {
    absl::StatusOr<double> seconds = ParseSeconds(flags.duration);
    if (!seconds.ok()) return seconds.status();
    load.duration_seconds = *seconds;
  }
  absl::StatusOr<double> timeout = ParseSeconds(flags.timeout);
  if (!timeout.ok()) return timeout.status();
  load.timeout_seconds = *timeout;
  load.requests = flags.requests;
  if (load.requests == 0 && load.duration_seconds == 0) load.requests = 100;
  load.concurrency = flags.concurrency;
  if (load.concurrency == 0 && flags.rate == 0) load.concurrency = 8;
  load.rate = flags.rate;
  load.poisson = flags.arrivals == "poisson";
  load.stream = flags.stream;
  load.seed = static_cast<uint64_t>(flags.seed);
  return load;
}

absl::StatusOr<WorkloadOptions> MakeWorkloadOptions(const BenchFlags& flags) {
  WorkloadOptions work;
  absl::StatusOr<LengthDistribution> input = LengthDistribution::Parse(flags.input_tokens);
  if (!input.ok()) return input.status();
  absl::StatusOr<LengthDistribution> output = LengthDistribution::Parse(flags.output_tokens);
  if (!output.ok()) return output.status();
  work.input_tokens = *input;
  work.output_tokens = *output;
  if (flags.prefix_tokens < 0 || flags.prefix_tokens > (4 << 20) || flags.prefix_groups < 1) {
    return absl::InvalidArgumentError("--prefix-tokens is 0 to 4194304, --prefix-groups 1 or more");
  }
  work.prefix_tokens = flags.prefix_tokens;
  work.prefix_groups = flags.prefix_groups;
  if (!flags.temperature.empty()) {
    char* end = nullptr;
    work.temperature = std::strtod(flags.temperature.c_str(), &end);
    if (*end != 0 || !(*work.temperature >= 0 && *work.temperature <= 2)) {
      return absl::InvalidArgumentError("--temperature is 0 to 2, not \"" + flags.temperature +
                                        "\"");
    }
  }
  if (!flags.dataset.empty()) {
    std::ifstream file(flags.dataset, std::ios::binary | std::ios::ate);
    if (!file) return absl::NotFoundError("cannot open " + flags.dataset);
    const auto bytes = static_cast<int64_t>(file.tellg());
    if (bytes > kMaxDatasetBytes) {
      return absl::InvalidArgumentError(flags.dataset + " is larger than 1 GiB");
    }
    std::string text(static_cast<size_t>(std::max<int64_t>(bytes, 0)), '\0');
    file.seekg(0);
    if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
      return absl::UnavailableError("cannot read " + flags.dataset);
    }
    absl::StatusOr<std::vector<DatasetEntry>> entries = ParseDataset(text, flags.dataset);
    if (!entries.ok()) return entries.status();
    work.dataset = *std::move(entries);
  }
  work.stream = flags.stream;
  work.ask_usage = flags.usage;
  work.ignore_eos = flags.ignore_eos;
  work.seed = static_cast<uint64_t>(flags.seed);
  return work;
}

int Fail(const absl::Status& status, std::ostream& err) {
  err << "hexad bench: " << Printable(std::string(status.message())) << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

void ShowProgress(const LoadProgress& progress, std::ostream& err) {
  char line[160];
  std::snprintf(
      line, sizeof(line),
      "\r\033[K%.0f s: %lld sent, %lld completed, %lld failed, %lld in flight, %.0f tok/s",
      progress.seconds, static_cast<long long>(progress.sent),
      static_cast<long long>(progress.completed), static_cast<long long>(progress.failed),
      static_cast<long long>(progress.in_flight),
      static_cast<double>(progress.output_tokens) / progress.seconds);
  err << line << std::flush;
}

}  // namespace

int LoadBenchCommand(std::span<const std::string> args, const BenchEnvironment& environment,
                     std::ostream& out, std::ostream& err) {
  BenchFlags typed;
  const FlagSet flags = typed.Declare();
  absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return Fail(parsed.status(), err);
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  if (!parsed->positional.empty()) {
    return Fail(absl::InvalidArgumentError("unexpected \"" + parsed->positional[0] + "\""), err);
  }
  absl::StatusOr<LoadOptions> load = MakeLoadOptions(typed);
  if (!load.ok()) return Fail(load.status(), err);
  absl::StatusOr<WorkloadOptions> work = MakeWorkloadOptions(typed);
  if (!work.ok()) return Fail(work.status(), err);
  ApiServer server{typed.url, typed.api_key.empty() ? environment.api_key : typed.api_key};
  if (typed.model == "auto") {
    absl::StatusOr<std::string> model = AskForModel(server);
    if (!model.ok()) return Fail(model.status(), err);
    typed.model = *std::move(model);
  }
  work->model = typed.model;

  std::unique_ptr<InterruptScope> interrupt;
  std::function<void(const LoadProgress&)> on_progress;
  if (environment.terminal) {
    interrupt = std::make_unique<InterruptScope>();
    load->interrupt_fd = interrupt->fd();
    on_progress = [&](const LoadProgress& progress) { ShowProgress(progress, err); };
  }
  const Workload workload(*std::move(work));
  const LoadResult result = RunLoad(server, workload, *load, on_progress);
  if (environment.terminal) err << "\r\033[K" << std::flush;

  const BenchReport report = MakeReport(result);
  const std::string json = ReportJson(report, typed.SettingsJson());
  if (typed.json == "-") {
    out << json;
  } else {
    out << "model      " << Printable(typed.model) << "\n" << Printable(ReportTable(report));
  }
  if (!typed.json.empty() && typed.json != "-") {
    std::ofstream file(typed.json, std::ios::binary);
    file << json;
    file.close();
    if (!file) return Fail(absl::UnavailableError("cannot write " + typed.json), err);
  }
  return report.failed == 0 && report.completed > 0 ? 0 : 1;
}

}  // namespace hexad
