#include "server/chat_template/chat_template.h"

#include <utility>

#include "absl/status/status.h"
#include "server/chat_template/ast.h"
#include "server/chat_template/interpreter.h"
#include "server/chat_template/parser.h"

namespace hexad {
namespace {

bool NestsTooDeeply(const TemplateInput& input) {
  // Leaves room for what the template wraps around it.
  constexpr int kMaxInputNesting = kMaxValueNesting / 2;
  if (input.messages.nesting() > kMaxInputNesting || input.tools.nesting() > kMaxInputNesting) {
    return true;
  }
  for (const auto& [name, value] : input.extra) {
    if (value.nesting() > kMaxInputNesting) return true;
  }
  return false;
}

}  // namespace

ChatTemplate::ChatTemplate() = default;
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(std::string_view source) {
  auto root = ParseTemplate(source);
  if (!root.ok()) return root.status();
  std::unique_ptr<ChatTemplate> made(new ChatTemplate());
  made->root_ = *std::move(root);
  return made;
}

absl::StatusOr<std::string> ChatTemplate::Render(const TemplateInput& input) const {
  if (NestsTooDeeply(input)) {
    return absl::InvalidArgumentError("messages, tools or template variables nest too deeply");
  }
  Interpreter interpreter(input);
  std::string output = interpreter.Render(*root_);
  if (interpreter.failed()) return interpreter.status();
  return output;
}

}  // namespace hexad
