#pragma once

#include <ostream>
#include <span>
#include <string>

namespace hexad {

// `hexad bench quality`: how well a model predicts a text, by activations and KV type. Exit codes
// as of BenchCommand.
int QualityBenchCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err);

}  // namespace hexad
