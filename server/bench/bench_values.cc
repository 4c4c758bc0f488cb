#include "server/bench/bench_values.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "server/client/json_text.h"

namespace hexad {
namespace {

constexpr int64_t kMostThreads = 1024;

}  // namespace

absl::StatusOr<Activations> ParseActivations(std::string_view text) {
  if (text == "int8") return Activations::kInt8;
  if (text == "f32") return Activations::kF32;
  return absl::InvalidArgumentError("activations are int8 or f32, not \"" + std::string(text) +
                                    "\"");
}

const char* ActivationsName(Activations activations) {
  return activations == Activations::kInt8 ? "int8" : "f32";
}

absl::StatusOr<DType> ParseDType(std::string_view text) {
  const std::string name = absl::AsciiStrToUpper(std::string(text));
  std::string known;
  for (int i = 0; i <= static_cast<int>(DType::kIQ4_NL); ++i) {
    const auto type = static_cast<DType>(i);
    if (name == Info(type).name) return type;
    known += (i == 0 ? "" : ", ") + std::string(Info(type).name);
  }
  return absl::InvalidArgumentError("there is no format \"" + std::string(text) + "\": " + known);
}

std::vector<std::string> SplitList(std::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(std::string(text), ',');
}

absl::StatusOr<int> ParseThreads(int64_t threads) {
  if (threads == 0) return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (threads < 0 || threads > kMostThreads) {
    return absl::InvalidArgumentError("--threads is 0 to " + std::to_string(kMostThreads));
  }
  return static_cast<int>(threads);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int FailBench(std::string_view what, const absl::Status& status, std::ostream& err) {
  err << "hexad bench " << what << ": " << Printable(std::string(status.message())) << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

int RunBench(std::string_view what, const FlagSet& flags, std::span<const std::string> args,
             std::ostream& out, std::ostream& err,
             absl::FunctionRef<absl::Status(std::span<const std::string> positional)> run) {
  const absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return FailBench(what, parsed.status(), err);
  if (parsed->help) {
    out << flags.Help();
    return 0;
  }
  const absl::Status status = run(parsed->positional);
  return status.ok() ? 0 : FailBench(what, status, err);
}

absl::Status RefusePositional(std::span<const std::string> positional) {
  if (positional.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("unexpected \"" + positional[0] + "\"");
}

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError("cannot write " + path);
  return absl::OkStatus();
}

}  // namespace hexad
