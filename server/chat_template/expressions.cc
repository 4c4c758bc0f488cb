// The expression half of the interpreter.

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "server/chat_template/builtins.h"
#include "server/chat_template/interpreter.h"
#include "server/chat_template/objects.h"
#include "server/chat_template/operators.h"
#include "server/chat_template/text_ops.h"

namespace hexad {

using Op = Expression::Kind;
using ValueKind = TemplateValue::Kind;

TemplateValue Interpreter::Evaluate(const Expression& expression) {
  const Depth depth(*this);
  if (!depth || !Step(expression.position)) return {};
  const auto& children = expression.children;
  switch (expression.kind) {
    case Op::kLiteral:
      return expression.value;
    case Op::kName:
      return EvaluateName(expression);
    case Op::kList:
    case Op::kTuple:
      return EvaluateSequence(expression);
    case Op::kDict:
      return EvaluateDict(expression);
    case Op::kAttribute:
      return Attribute(Evaluate(*children[0]), expression.name);
    case Op::kSubscript: {
      const TemplateValue base = Evaluate(*children[0]);
      return Subscript(base, Evaluate(*children[1]));
    }
    case Op::kSlice:
      return EvaluateSlice(expression);
    case Op::kCall: {
      const TemplateValue callee = Evaluate(*children[0]);
      const TemplateArguments arguments = EvaluateArguments(expression);
      return failed() ? TemplateValue() : Call(callee, arguments);
    }
    case Op::kFilter:
      return EvaluateFilter(expression, nullptr);
    case Op::kTest: {
      const TemplateValue value = Evaluate(*children[0]);
      const TemplateArguments arguments = EvaluateArguments(expression);
      return TemplateValue(!failed() && Test(expression.name, value, arguments));
    }
    case Op::kNot:
      return TemplateValue(!Evaluate(*children[0]).Truthy());
    case Op::kNegate:
      return Negate(*this, Evaluate(*children[0]));
    case Op::kPlus: {
      const TemplateValue value = Evaluate(*children[0]);
      return value.is_number() ? value : Fail("bad operand type for unary +");
    }
    case Op::kAnd:
    case Op::kOr: {
      TemplateValue value;
      for (const ExpressionPtr& child : children) {
        value = Evaluate(*child);
        if (failed() || value.Truthy() == (expression.kind == Op::kOr)) break;
      }
      return value;
    }
    case Op::kConcat:
      return EvaluateConcat(expression);
    case Op::kArithmetic: {
      const TemplateValue left = Evaluate(*children[0]);
      const TemplateValue right = Evaluate(*children[1]);
      return failed() ? TemplateValue() : Arithmetic(*this, expression.name, left, right);
    }
    case Op::kCompare:
      return EvaluateCompare(expression);
    case Op::kConditional:
      if (Evaluate(*children[0]).Truthy()) return Evaluate(*children[1]);
      if (children[2] != nullptr) return Evaluate(*children[2]);
      return TemplateValue::Undefined("the inline if-expression has no else");
  }
  return {};
}

TemplateValue Interpreter::EvaluateName(const Expression& expression) {
  if (const TemplateValue* value = scope_->Find(expression.name)) return *value;
  return TemplateValue::Undefined(absl::StrFormat("'%s' is undefined", expression.name));
}

TemplateValue Interpreter::EvaluateSequence(const Expression& expression) {
  TemplateValue::List items;
  items.reserve(expression.children.size());
  for (const ExpressionPtr& child : expression.children) items.push_back(Evaluate(*child));
  return Sequence(expression.kind == Op::kList ? ValueKind::kList : ValueKind::kTuple,
                  std::move(items));
}

TemplateValue Interpreter::EvaluateDict(const Expression& expression) {
  TemplateDict dict;
  for (size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    TemplateValue key = Evaluate(*expression.children[i]);
    TemplateValue value = Evaluate(*expression.children[i + 1]);
    if (failed()) return {};
    if (!Scan(key.is_string() ? key.string().size() * 16 : 1)) return {};
    const char* type = key.TypeName();
    if (!dict.Set(std::move(key), std::move(value))) {
      return Fail(absl::StrFormat("unhashable type: '%s'", type));
    }
  }
  return Dict(std::move(dict));
}

TemplateValue Interpreter::EvaluateSlice(const Expression& expression) {
  const TemplateValue base = Evaluate(*expression.children[0]);
  TemplateValue bounds[3];
  for (int i = 0; i < 3; ++i) {
    const ExpressionPtr& bound = expression.children[static_cast<size_t>(i) + 1];
    if (bound != nullptr) bounds[i] = Evaluate(*bound);
  }
  return failed() ? TemplateValue() : Slice(*this, base, bounds[0], bounds[1], bounds[2]);
}

TemplateValue Interpreter::EvaluateConcat(const Expression& expression) {
  std::string joined;
  for (const ExpressionPtr& child : expression.children) {
    joined += ToText(Evaluate(*child));
    if (failed()) return {};
  }
  return Text(std::move(joined));
}

TemplateValue Interpreter::EvaluateCompare(const Expression& expression) {
  TemplateValue left = Evaluate(*expression.children[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    TemplateValue right = Evaluate(*expression.children[i + 1]);
    if (failed() || !CompareValues(*this, expression.operators[i], left, right)) {
      return TemplateValue(false);
    }
    left = std::move(right);
  }
  return TemplateValue(true);
}

TemplateArguments Interpreter::EvaluateArguments(const Expression& expression) {
  TemplateArguments arguments;
  for (size_t i = 1; i < expression.children.size(); ++i) {
    arguments.positional.push_back(Evaluate(*expression.children[i]));
  }
  for (const auto& [name, value] : expression.named) {
    arguments.named.emplace_back(name, Evaluate(*value));
  }
  return arguments;
}

TemplateValue Interpreter::EvaluateFilter(const Expression& expression,
                                          const TemplateValue* input) {
  const Depth depth(*this);
  if (!depth) return {};
  const Expression* inner = expression.children[0].get();
  TemplateValue value;
  if (inner == nullptr) {
    if (input != nullptr) value = *input;  // the text of a filter block or set block
  } else if (inner->kind == Op::kFilter) {
    value = EvaluateFilter(*inner, input);
  } else {
    value = Evaluate(*inner);
  }
  const TemplateArguments arguments = EvaluateArguments(expression);
  if (!Step(expression.position)) return {};
  return Filter(expression.name, value, arguments);
}

TemplateValue Interpreter::Filter(const std::string& name, const TemplateValue& input,
                                  const TemplateArguments& arguments) {
  const BuiltinFunction filter = FindFilter(name);
  if (filter == nullptr) return Fail(absl::StrFormat("No filter named '%s' found.", name));
  if (failed()) return {};
  return filter(*this, input, arguments);
}

bool Interpreter::Test(const std::string& name, const TemplateValue& input,
                       const TemplateArguments& arguments) {
  const TestFunction test = FindTest(name);
  if (test == nullptr) {
    Fail(absl::StrFormat("No test named '%s' found.", name));
    return false;
  }
  return !failed() && test(*this, input, arguments);
}

TemplateValue Interpreter::Call(const TemplateValue& callee, const TemplateArguments& arguments) {
  const Depth depth(*this);
  if (!depth) return {};
  if (callee.is_undefined()) return Fail(callee.why_undefined());
  if (!callee.is_object()) {
    return Fail(absl::StrFormat("'%s' object is not callable", callee.TypeName()));
  }
  // Held, since the call may replace the variable that held it.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const TemplateValue held = callee;
  return static_cast<RuntimeObject&>(held.object()).Call(*this, arguments);
}

TemplateValue Interpreter::Attribute(const TemplateValue& base, std::string_view name) {
  if (failed()) return {};
  if (base.is_undefined()) return Fail(base.why_undefined());
  if (base.is_object()) {
    auto found = static_cast<RuntimeObject&>(base.object()).Attribute(*this, name);
    if (found) return *std::move(found);
  } else if (IsForbiddenMethod(base, name)) {
    return TemplateValue::Undefined(absl::StrFormat(
        "access to attribute '%s' of '%s' object is unsafe.", name, base.TypeName()));
  } else if (const BuiltinFunction method = FindMethod(base, name)) {
    return TemplateValue(std::make_shared<FunctionObject>(
        std::string(name), [base, method](Interpreter& self, const TemplateArguments& arguments) {
          return method(self, base, arguments);
        }));
  } else if (base.is_dict()) {
    if (const TemplateValue* value = base.dict().FindKey(name)) return *value;
  }
  return TemplateValue::Undefined(
      absl::StrFormat("'%s object' has no attribute '%s'", base.TypeName(), name));
}

TemplateValue Interpreter::Subscript(const TemplateValue& base, const TemplateValue& key) {
  if (failed()) return {};
  if (base.is_undefined()) return Fail(base.why_undefined());
  if (base.is_dict()) {
    if (!Scan(key.is_string() ? key.string().size() : 1)) return {};
    if (const TemplateValue* value = base.dict().Find(key)) return *value;
  }
  if (key.is_string()) return Attribute(base, key.string());
  if (key.is_undefined() && !base.is_dict()) return Fail(key.why_undefined());
  const bool sequence = base.is_sequence() && base.kind() != ValueKind::kGenerator;
  if ((key.is_int() || key.is_bool()) && (sequence || base.is_string())) {
    const bool last = key.integer() == -1 || key.integer() == std::numeric_limits<int64_t>::max();
    const TemplateValue end = last ? TemplateValue() : TemplateValue(key.integer() + 1);
    if (sequence) {
      const auto& items = base.items();
      const auto size = static_cast<int64_t>(items.size());
      const int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
      if (index >= 0 && index < size) return items[static_cast<size_t>(index)];
    } else {
      const TemplateValue character = Slice(*this, base, key, end, TemplateValue());
      if (failed() || character.Truthy()) return character;
    }
  }
  return TemplateValue::Undefined(
      absl::StrFormat("'%s object' has no element %s", base.TypeName(), ToText(key)));
}

TemplateValue Interpreter::AttributePath(const TemplateValue& base, const TemplateValue& path) {
  if (!path.is_string()) return Subscript(base, path);
  TemplateValue value = base;
  for (std::string_view part : SplitText(path.string(), ".", -1)) {
    const bool number =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const TemplateValue key =
        number ? TemplateValue(std::stoi(std::string(part))) : TemplateValue(part);
    value = Subscript(value, key);
    if (failed()) return {};
  }
  return value;
}

TemplateValue::List Interpreter::Iterate(const TemplateValue& value) {
  TemplateValue::List items;
  if (failed()) return items;
  if (value.is_sequence()) {
    if (Spend(value.items().size() * sizeof(TemplateValue))) items = value.items();
  } else if (value.is_dict()) {
    if (!Spend(value.dict().size() * sizeof(TemplateValue))) return items;
    for (const auto& [key, item] : value.dict().entries()) items.push_back(key);
  } else if (value.is_string()) {
    // Every character becomes a value of its own.
    if (!Spend(value.string().size() * 4 * sizeof(TemplateValue))) return items;
    for (std::string_view c : SplitCharacters(value.string())) items.emplace_back(c);
  } else if (!value.is_undefined()) {
    Fail(absl::StrFormat("'%s' object is not iterable", value.TypeName()));
  }
  return items;
}

}  // namespace hexad
