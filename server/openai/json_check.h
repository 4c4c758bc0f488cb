#pragma once

// Where and why a text is no JSON (RFC 8259). The fast parser only says that it is none.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hexad {

struct JsonError {
  size_t offset = 0;  // of the first byte that cannot be right
  std::string what;
};

// nullopt: the text is one JSON value, nested at most max_depth deep.
std::optional<JsonError> FindJsonError(std::string_view text, int max_depth);

}  // namespace hexad
