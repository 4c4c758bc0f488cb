#include "server/bench/engine_test_spec.h"

#include <charconv>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hexad {
namespace {

constexpr int32_t kMostTokens = 1 << 20;
constexpr int32_t kMostBatch = 1024;
constexpr int32_t kUnit = 16;  // blocks are multiples of it

absl::Status Bad(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError("test \"" + text + "\": " + why);
}

// False: not a number between low and high.
bool ParseNumber(const std::string& text, int32_t low, int32_t high, int32_t& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end && value >= low && value <= high;
}

absl::Status SetField(const std::string& test, const std::string& field, EngineTestSpec& spec) {
  const size_t equals = field.find('=');
  const std::string name = field.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : field.substr(equals + 1);
  if (name == "tokens") {
    if (ParseNumber(value, 1, kMostTokens, spec.tokens)) return absl::OkStatus();
    return Bad(test, "tokens is a number from 1 on");
  }
  if (name == "depth") {
    const bool good = ParseNumber(value, 0, kMostTokens, spec.depth) && spec.depth % kUnit == 0;
    return good ? absl::OkStatus() : Bad(test, "depth is a multiple of 16");
  }
  if (name == "batch") {
    if (ParseNumber(value, 1, kMostBatch, spec.batch)) return absl::OkStatus();
    return Bad(test, absl::StrFormat("batch is 1 to %d", kMostBatch));
  }
  if (name == "prompt" && (value == "shared" || value == "own")) {
    spec.shared = value == "shared";
    return absl::OkStatus();
  }
  return Bad(test,
             "a field is tokens=N, depth=N, batch=N or prompt=shared|own, not \"" + field + "\"");
}

}  // namespace

absl::StatusOr<EngineTestSpec> ParseEngineTest(std::string_view text) {
  const std::string test(text);
  const std::vector<std::string> parts = absl::StrSplit(test, ':');
  EngineTestSpec spec;
  if (parts[0] == "prefill") {
    spec.kind = EngineTestSpec::Kind::kPrefill;
    spec.tokens = 512;
  } else if (parts[0] != "decode") {
    return Bad(test, "a test begins with decode or prefill");
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const absl::Status status = SetField(test, parts[i], spec);
    if (!status.ok()) return status;
  }
  if (spec.kind == EngineTestSpec::Kind::kPrefill && spec.batch != 1) {
    return Bad(test, "a prefill is of one sequence");
  }
  return spec;
}

std::string EngineTestName(const EngineTestSpec& spec) {
  const bool prefill = spec.kind == EngineTestSpec::Kind::kPrefill;
  std::string name = absl::StrFormat("%s:tokens=%d:depth=%d", prefill ? "prefill" : "decode",
                                     spec.tokens, spec.depth);
  if (!prefill) name += absl::StrFormat(":batch=%d", spec.batch);
  if (spec.batch > 1) name += spec.shared ? ":prompt=shared" : ":prompt=own";
  return name;
}

}  // namespace hexad
