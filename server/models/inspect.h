#pragma once

// What is inside a GGUF file, and how much memory serving it takes.

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace hexad {

// Prints architecture, parameters, tensor types, context, tokenizer, template and the memory for
// weights and for the KV of `context` tokens (0: the model's own context) in f16.
absl::Status InspectModel(const std::string& path, int64_t context, std::ostream& out);

}  // namespace hexad
