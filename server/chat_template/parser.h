#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/chat_template/ast.h"

namespace hexad {

// The parsed template as one kSequence. Depth and size are bounded, so that neither evaluating nor
// destroying the tree can exhaust the stack.
absl::StatusOr<TemplateNodePtr> ParseTemplate(std::string_view source);

}  // namespace hexad
