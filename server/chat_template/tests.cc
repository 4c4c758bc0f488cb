// What may stand behind "is".

#include <algorithm>

#include "server/chat_template/builtins.h"
#include "server/chat_template/operators.h"
#include "server/chat_template/text_ops.h"

namespace hexad {
namespace {

using Kind = TemplateValue::Kind;
using Value = const TemplateValue&;
using Arguments = const TemplateArguments&;

template <bool (TemplateValue::*kHas)() const>
bool Has(Interpreter&, Value value, Arguments) {
  return (value.*kHas)();
}

bool IsDefined(Interpreter&, Value value, Arguments) { return !value.is_undefined(); }
bool IsTrue(Interpreter&, Value value, Arguments) { return value.is_bool() && value.boolean(); }
bool IsFalse(Interpreter&, Value value, Arguments) { return value.is_bool() && !value.boolean(); }

bool IsIterable(Interpreter&, Value value, Arguments) {
  return value.is_sequence() || value.is_dict() || value.is_string() || value.is_undefined();
}

bool IsSequence(Interpreter&, Value value, Arguments) {
  return (value.is_sequence() && value.kind() != Kind::kGenerator) || value.is_dict() ||
         value.is_string() || value.is_undefined();
}

bool IsCallable(Interpreter&, Value value, Arguments) {
  return value.is_object() && value.object().callable();
}

bool IsLower(Interpreter& interpreter, Value value, Arguments) {
  const std::string text = interpreter.ToText(value);
  return LowerText(text) == text && UpperText(text) != text;
}

bool IsUpper(Interpreter& interpreter, Value value, Arguments) {
  const std::string text = interpreter.ToText(value);
  return UpperText(text) == text && LowerText(text) != text;
}

bool Divides(Interpreter& interpreter, Value value, int64_t divisor) {
  const TemplateValue rest = Arithmetic(interpreter, "%", value, TemplateValue(divisor));
  return rest.is_number() && rest.number() == 0;
}

bool IsEven(Interpreter& interpreter, Value value, Arguments) {
  return Divides(interpreter, value, 2);
}

bool IsOdd(Interpreter& interpreter, Value value, Arguments) {
  return !Divides(interpreter, value, 2) && !interpreter.failed();
}

bool IsDivisibleBy(Interpreter& interpreter, Value value, Arguments arguments) {
  return Divides(interpreter, value, IntegerArgument(interpreter, arguments, 0, "num", 0));
}

// The one argument of a comparing test.
const TemplateValue* Other(Interpreter& interpreter, Arguments arguments) {
  const TemplateValue* other = arguments.Get(0, "");
  if (other == nullptr) interpreter.Fail("the test takes an argument");
  return other;
}

template <int kOperator>
bool Compares(Interpreter& interpreter, Value value, Arguments arguments) {
  static constexpr const char* kNames[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
  const TemplateValue* other = Other(interpreter, arguments);
  return other != nullptr && CompareValues(interpreter, kNames[kOperator], value, *other);
}

bool IsSameAs(Interpreter& interpreter, Value value, Arguments arguments) {
  const TemplateValue* other = Other(interpreter, arguments);
  return other != nullptr && value.kind() == other->kind() && interpreter.Same(value, *other);
}

bool IsFilter(Interpreter& interpreter, Value value, Arguments) {
  return FindFilter(interpreter.ToText(value)) != nullptr;
}

bool IsTest(Interpreter& interpreter, Value value, Arguments) {
  return FindTest(interpreter.ToText(value)) != nullptr;
}

bool IsEscaped(Interpreter&, Value, Arguments) { return false; }

struct TestEntry {
  const char* name;
  TestFunction function;
};

constexpr TestEntry kTests[] = {
    {"boolean", Has<&TemplateValue::is_bool>},
    {"callable", IsCallable},
    {"defined", IsDefined},
    {"divisibleby", IsDivisibleBy},
    {"eq", Compares<0>},
    {"equalto", Compares<0>},
    {"escaped", IsEscaped},
    {"even", IsEven},
    {"false", IsFalse},
    {"filter", IsFilter},
    {"float", Has<&TemplateValue::is_float>},
    {"ge", Compares<5>},
    {"greaterthan", Compares<4>},
    {"gt", Compares<4>},
    {"in", Compares<6>},
    {"integer", Has<&TemplateValue::is_int>},
    {"iterable", IsIterable},
    {"le", Compares<3>},
    {"lessthan", Compares<2>},
    {"lower", IsLower},
    {"lt", Compares<2>},
    {"mapping", Has<&TemplateValue::is_dict>},
    {"ne", Compares<1>},
    {"none", Has<&TemplateValue::is_none>},
    {"number", Has<&TemplateValue::is_number>},
    {"odd", IsOdd},
    {"sameas", IsSameAs},
    {"sequence", IsSequence},
    {"string", Has<&TemplateValue::is_string>},
    {"test", IsTest},
    {"true", IsTrue},
    {"undefined", Has<&TemplateValue::is_undefined>},
    {"upper", IsUpper},
    {"==", Compares<0>},
    {"!=", Compares<1>},
    {"<", Compares<2>},
    {"<=", Compares<3>},
    {">", Compares<4>},
    {">=", Compares<5>},
};

}  // namespace

TestFunction FindTest(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [name](const TestEntry& entry) { return name == entry.name; });
  return found == std::end(kTests) ? nullptr : found->function;
}

}  // namespace hexad
