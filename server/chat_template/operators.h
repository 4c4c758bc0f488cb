#pragma once

// Python's operators on template values.

#include <string>

#include "server/chat_template/render_context.h"

namespace hexad {

TemplateValue Arithmetic(RenderContext& context, const std::string& op, const TemplateValue& left,
                         const TemplateValue& right);
// "==", "!=", "<", "<=", ">", ">=", "in" and "not in".
bool CompareValues(RenderContext& context, const std::string& op, const TemplateValue& left,
                   const TemplateValue& right);
bool Contains(RenderContext& context, const TemplateValue& container, const TemplateValue& item);
// -1, 0, 1; fails for what Python does not order.
int Order(RenderContext& context, const TemplateValue& left, const TemplateValue& right,
          const std::string& op = "<");
TemplateValue Negate(RenderContext& context, const TemplateValue& value);
// value[start:stop:step]; the bounds are integers, None or undefined.
TemplateValue Slice(RenderContext& context, const TemplateValue& value, const TemplateValue& start,
                    const TemplateValue& stop, const TemplateValue& step);

}  // namespace hexad
