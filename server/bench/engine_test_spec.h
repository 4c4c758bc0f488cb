#pragma once

// One measurement of `hexad bench engine`, as it is written on the command line. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hexad {

struct EngineTestSpec {
  enum class Kind : uint8_t { kDecode, kPrefill };
  Kind kind = Kind::kDecode;
  int32_t tokens = 64;  // computed by one repetition, of each sequence
  int32_t depth = 0;    // tokens before them, computed once and kept; a multiple of 16
  int32_t batch = 1;    // sequences that decode together
  bool shared = true;   // their depth is one prefix for all, else each has its own

  friend bool operator==(const EngineTestSpec&, const EngineTestSpec&) = default;
};

// "decode", "prefill:tokens=512", "decode:batch=8:depth=256:prompt=own": a kind, then fields in any
// order. InvalidArgument says what is wrong and what is possible.
absl::StatusOr<EngineTestSpec> ParseEngineTest(std::string_view text);

// The same written out in full: ParseEngineTest gives the spec back.
std::string EngineTestName(const EngineTestSpec& spec);

}  // namespace hexad
