#pragma once

// Template source to tokens: text with Jinja's whitespace control applied, and the words inside
// {{ }} and {% %}.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/chat_template/ast.h"

namespace hexad {

struct TemplateToken {
  enum class Kind : uint8_t {
    kText,           // text between tags
    kVariableBegin,  // {{
    kVariableEnd,
    kBlockBegin,  // {%
    kBlockEnd,
    kName,
    kString,  // unescaped
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  SourcePosition position;
};

// An InvalidArgument error: "chat template, line L, column C: message".
absl::Status TemplateError(SourcePosition position, const std::string& message);

// Ends with one kEnd token.
absl::StatusOr<std::vector<TemplateToken>> LexTemplate(std::string_view source);

}  // namespace hexad
