#pragma once

// What one rendering may still spend, and its first error. After an error every operation is
// cheap and its result is ignored, so that code here returns values, not statuses.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/chat_template/ast.h"
#include "server/chat_template/chat_template.h"

namespace hexad {

inline constexpr int kMaxValueNesting = 200;

class RenderContext {
 public:
  explicit RenderContext(const TemplateLimits& limits);

  bool failed() const { return !status_.ok(); }
  const absl::Status& status() const { return status_; }
  // Records an error at the current position, unless there is one. The result is undefined.
  TemplateValue Fail(const std::string& message);
  // The same in the template's own words.
  TemplateValue FailPlainly(const std::string& message);

  // One unit of evaluation; false when the rendering has failed or spent its steps.
  bool Step(SourcePosition position);
  // Bytes made, and bytes only looked at, which cost a sixteenth.
  bool Spend(size_t bytes);
  bool Scan(size_t bytes) { return Spend(bytes / 16 + 1); }
  // How large a text may become now.
  size_t bytes_left() const { return bytes_left_; }

  TemplateValue Text(std::string text);
  TemplateValue Sequence(TemplateValue::Kind kind, TemplateValue::List items);
  TemplateValue List(TemplateValue::List items) {
    return Sequence(TemplateValue::Kind::kList, std::move(items));
  }
  TemplateValue Dict(TemplateDict dict);
  // str(value), spent.
  std::string ToText(const TemplateValue& value);
  bool Same(const TemplateValue& a, const TemplateValue& b);

  // Nesting of evaluation; construct one in every function that recurses, and stop when it is
  // false.
  class Depth final {
   public:
    explicit Depth(RenderContext& context) : context_(context) {
      entered_ = ++context_.depth_ <= context_.limits_.max_depth;
      if (!entered_) context_.Fail("nested too deeply");
    }
    ~Depth() { --context_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    explicit operator bool() const { return entered_; }

   private:
    RenderContext& context_;
    bool entered_;
  };

 protected:
  const TemplateLimits limits_;

 private:
  TemplateValue Checked(TemplateValue value);

  int64_t steps_left_;
  size_t bytes_left_;
  int depth_ = 0;
  SourcePosition position_;
  absl::Status status_;
};

}  // namespace hexad
