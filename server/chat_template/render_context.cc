#include "server/chat_template/render_context.h"

#include "absl/strings/str_format.h"
#include "server/chat_template/lexer.h"
#include "server/chat_template/value_text.h"

namespace hexad {

RenderContext::RenderContext(const TemplateLimits& limits)
    : limits_(limits), steps_left_(limits.max_steps), bytes_left_(limits.max_created_bytes) {}

TemplateValue RenderContext::Fail(const std::string& message) {
  if (status_.ok()) status_ = TemplateError(position_, message);
  return {};
}

TemplateValue RenderContext::FailPlainly(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  return {};
}

bool RenderContext::Step(SourcePosition position) {
  if (failed()) return false;
  position_ = position;
  if (--steps_left_ >= 0) return true;
  Fail(absl::StrFormat("rendering takes more than %d steps", limits_.max_steps));
  return false;
}

bool RenderContext::Spend(size_t bytes) {
  if (failed()) return false;
  if (bytes <= bytes_left_) {
    bytes_left_ -= bytes;
    return true;
  }
  bytes_left_ = 0;
  Fail(absl::StrFormat("rendering makes more than %d bytes of values", limits_.max_created_bytes));
  return false;
}

TemplateValue RenderContext::Text(std::string text) {
  if (!Spend(text.size() + sizeof(std::string))) return {};
  if (text.size() > limits_.max_output_bytes) {
    return Fail(absl::StrFormat("a text of more than %d bytes", limits_.max_output_bytes));
  }
  return TemplateValue(std::move(text));
}

TemplateValue RenderContext::Checked(TemplateValue value) {
  if (value.nesting() <= kMaxValueNesting) return value;
  return Fail("a list or dict is nested too deeply");
}

TemplateValue RenderContext::Sequence(TemplateValue::Kind kind, TemplateValue::List items) {
  if (!Spend((items.size() + 2) * sizeof(TemplateValue))) return {};
  return Checked(TemplateValue(kind, std::move(items)));
}

TemplateValue RenderContext::Dict(TemplateDict dict) {
  // An entry, its index and the spelled key.
  if (!Spend((dict.size() + 1) * (sizeof(TemplateDict::Entry) + 64))) return {};
  return Checked(TemplateValue(std::move(dict)));
}

std::string RenderContext::ToText(const TemplateValue& value) {
  std::string text;
  if (value.is_string()) {
    if (Spend(value.string().size())) text = value.string();
  } else {
    AppendText(value, bytes_left_, text);
    if (!Spend(text.size())) text.clear();
  }
  return text;
}

bool RenderContext::Same(const TemplateValue& a, const TemplateValue& b) {
  if (failed()) return false;
  const bool same = a.Equals(b, steps_left_);
  if (steps_left_ < 0) {
    Fail(absl::StrFormat("rendering takes more than %d steps", limits_.max_steps));
  }
  return same;
}

}  // namespace hexad
