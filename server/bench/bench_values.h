#pragma once

// What the subcommands of `hexad bench` read from their options alike, and how they sum up times.

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/types.h"
#include "server/command_line/flags.h"

namespace hexad {

absl::StatusOr<Activations> ParseActivations(std::string_view text);  // "f32", "int8"
const char* ActivationsName(Activations activations);

// Any type's name as in GGUF files, whatever the case: "q4_0", "F16", "bf16", "iq4_nl".
absl::StatusOr<DType> ParseDType(std::string_view text);

// "a,b" as {"a", "b"}; empty text: none.
std::vector<std::string> SplitList(std::string_view text);

// 0: as many as the machine has.
absl::StatusOr<int> ParseThreads(int64_t threads);

// The middle one, or the mean of the two. REQUIRES: not empty.
double Median(std::vector<double> values);

// Prints "hexad bench WHAT: message"; the exit code: 2 for misuse, else 1.
int FailBench(std::string_view what, const absl::Status& status, std::ostream& err);

// A whole subcommand: reads `args` into `flags`, prints the help when asked, else calls `run` with
// what is no option. The exit code.
int RunBench(std::string_view what, const FlagSet& flags, std::span<const std::string> args,
             std::ostream& out, std::ostream& err,
             absl::FunctionRef<absl::Status(std::span<const std::string> positional)> run);

// The error of a subcommand that takes options alone, when there is anything else.
absl::Status RefusePositional(std::span<const std::string> positional);

// Writes `text` to `path`.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace hexad
