#include "server/bench/quality_command.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/models/model_file.h"
#include "engine/perplexity.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/bench/bench_values.h"
#include "server/command_line/flags.h"

namespace hexad {
namespace {

constexpr int64_t kMostTextBytes = int64_t{256} << 20;

constexpr char kExamples[] =
    "  hexad bench quality model.gguf text.txt\n"
    "  hexad bench quality model.gguf text.txt --kv f16,q8_0 --activations f32,int8\n"
    "  hexad bench quality model.gguf text.txt --window 512 --tokens 4096 --json quality.json\n"
    "\n"
    "The text is cut into windows that each start anew with the model's beginning of sequence, if\n"
    "it has one. Perplexity is exp of the mean negative log-likelihood (nll) of a token; the\n"
    "difference is to the first line. Compare only figures with equal ids: the same tokens.\n";

struct QualityFlags {
  int64_t threads = 0;
  int64_t window = 2048;
  int64_t tokens = 0;
  std::string activations = "f32,int8";
  std::string kv = "f32,f16";
  std::string json;

  FlagSet Declare() {
    FlagSet flags("hexad bench quality MODEL.gguf TEXT",
                  "Measures the perplexity of a text: what int8 activations and smaller keys and "
                  "values cost.",
                  kExamples);
    flags.Add("threads", &threads, "N", "that compute; 0: all CPUs");
    flags.Add("window", &window, "N", "tokens that are predicted in one go, from 16 on");
    flags.Add("tokens", &tokens, "N", "of the text at most; 0: all");
    flags.Add("activations", &activations, "LIST", "that meet quantised weights: f32, int8");
    flags.Add("kv", &kv, "LIST", "types of keys and values: f32, f16, q8_0");
    flags.Add("json", &json, "FILE", "a line a setting there; -: to the output, without a table");
    return flags;
  }
};

struct Text {
  std::vector<std::vector<TokenId>> windows;
  int64_t predicted = 0;
  unsigned long long ids = 14695981039346656037ull;  // FNV-1a of the ids
};

absl::StatusOr<Text> ReadText(const ModelFile& model, const std::string& path,
                              const QualityFlags& flags) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::FromGguf(*model.gguf);
  if (!tokenizer.ok()) return tokenizer.status();
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return absl::NotFoundError("cannot open " + path);
  if (static_cast<int64_t>(in.tellg()) > kMostTextBytes) {
    return absl::InvalidArgumentError(path + " is larger than 256 MiB");
  }
  in.seekg(0);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto begin = (*tokenizer)->Encode("", {.add_special = true});
  if (!begin.ok()) return begin.status();
  auto tokens = (*tokenizer)->Encode(bytes, {});
  if (!tokens.ok()) return tokens.status();
  if (flags.tokens > 0 && tokens->size() > static_cast<size_t>(flags.tokens)) {
    tokens->resize(static_cast<size_t>(flags.tokens));
  }
  const auto window =
      static_cast<size_t>(std::min<int64_t>(flags.window, model.spec.max_context_tokens));
  Text text;
  for (size_t first = 0; first < tokens->size();) {
    std::vector<TokenId> part = *begin;
    while (part.size() < window && first < tokens->size()) part.push_back((*tokens)[first++]);
    if (part.size() < 2) break;
    for (const TokenId token : part) {
      text.ids = (text.ids ^ static_cast<unsigned>(token)) * 1099511628211ull;
    }
    text.predicted += static_cast<int64_t>(part.size()) - 1;
    text.windows.push_back(std::move(part));
  }
  if (text.windows.empty()) return absl::InvalidArgumentError(path + ": nothing to predict");
  return text;
}

// Mean negative log-likelihood over all windows.
absl::StatusOr<double> Measure(const std::shared_ptr<const ModelFile>& model, const Text& text,
                               const PerplexityOptions& options) {
  double nll = 0;
  for (const std::vector<TokenId>& window : text.windows) {
    const absl::StatusOr<PerplexityResult> result = MeasurePerplexity(model, window, options);
    if (!result.ok()) return result.status();
    nll += result->mean_negative_logprob * static_cast<double>(result->predicted);
  }
  return nll / static_cast<double>(text.predicted);
}

absl::StatusOr<std::vector<PerplexityOptions>> Settings(const QualityFlags& flags) {
  const absl::StatusOr<int> threads = ParseThreads(flags.threads);
  if (!threads.ok()) return threads.status();
  if (flags.window < 16 || flags.tokens < 0) {
    return absl::InvalidArgumentError("--window is 16 or more, --tokens 0 or more");
  }
  std::vector<PerplexityOptions> settings;
  for (const std::string& kv : SplitList(flags.kv)) {
    for (const std::string& activations : SplitList(flags.activations)) {
      PerplexityOptions options;
      options.threads = *threads;
      const absl::StatusOr<DType> type = ParseDType(kv);
      if (!type.ok()) return type.status();
      options.kv_type = *type;
      const absl::StatusOr<Activations> kind = ParseActivations(activations);
      if (!kind.ok()) return kind.status();
      options.activations = *kind;
      settings.push_back(options);
    }
  }
  if (settings.empty()) return absl::InvalidArgumentError("--kv or --activations names nothing");
  return settings;
}

absl::Status Run(const std::string& model_path, const std::string& text_path,
                 const QualityFlags& flags, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<std::vector<PerplexityOptions>> settings = Settings(flags);
  if (!settings.ok()) return settings.status();
  const absl::StatusOr<std::shared_ptr<const ModelFile>> model = OpenModelFile(model_path);
  if (!model.ok()) return model.status();
  const absl::StatusOr<Text> text = ReadText(**model, text_path, flags);
  if (!text.ok()) return text.status();
  const bool table = flags.json != "-";
  if (table) {
    out << absl::StrFormat("%d tokens predicted in %d windows, ids %016x\n", text->predicted,
                           text->windows.size(), text->ids);
    out << absl::StrFormat("%-12s %-6s %10s %12s %12s\n", "activations", "kv", "nll", "perplexity",
                           "difference");
  }
  std::string lines;
  double first = 0;
  for (const PerplexityOptions& options : *settings) {
    const char* activations = ActivationsName(options.activations);
    const char* kv = Info(options.kv_type).name;
    err << "measuring " << activations << " activations, " << kv << " keys and values\n";
    const absl::StatusOr<double> nll = Measure(*model, *text, options);
    if (!nll.ok()) return nll.status();
    if (&options == &settings->front()) first = *nll;
    const double difference = std::exp(*nll - first) - 1;
    const std::string line = absl::StrFormat(
        "{\"activations\":\"%s\",\"kv\":\"%s\",\"predicted\":%d,\"nll\":%.6f,\"perplexity\":%.4f,"
        "\"difference\":%.6f,\"ids\":\"%016x\"}\n",
        activations, kv, text->predicted, *nll, std::exp(*nll), difference, text->ids);
    if (table) {
      out << absl::StrFormat("%-12s %-6s %10.6f %12.4f %+11.3f %%\n", activations, kv, *nll,
                             std::exp(*nll), 100 * difference)
          << std::flush;
    } else {
      out << line << std::flush;
    }
    lines += line;
  }
  if (table && !flags.json.empty()) return WriteTextFile(flags.json, lines);
  return absl::OkStatus();
}

}  // namespace

int QualityBenchCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  QualityFlags typed;
  return RunBench("quality", typed.Declare(), args, out, err,
                  [&](std::span<const std::string> positional) -> absl::Status {
                    if (positional.size() != 2) {
                      return absl::InvalidArgumentError("say which model and which text");
                    }
                    return Run(positional[0], positional[1], typed, out, err);
                  });
}

}  // namespace hexad
