// Filters that run another filter or test on every item, and those on one value.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "server/chat_template/builtins.h"
#include "server/chat_template/text_ops.h"

namespace hexad {
namespace {

using Kind = TemplateValue::Kind;

// The arguments behind the first `count`.
TemplateArguments Rest(const TemplateArguments& arguments, size_t count) {
  TemplateArguments rest = arguments;
  const auto end = static_cast<std::ptrdiff_t>(std::min(count, rest.positional.size()));
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + end);
  return rest;
}

// None and other false values have no items here, where elsewhere they are errors.
TemplateValue::List ItemsOf(Interpreter& interpreter, const TemplateValue& input) {
  return input.Truthy() ? interpreter.Iterate(input) : TemplateValue::List();
}

template <bool kKeep, bool kAttribute>
TemplateValue Select(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments& arguments) {
  const size_t before = kAttribute ? 1 : 0;
  if (kAttribute && arguments.positional.empty()) {
    return interpreter.Fail("Missing parameter for attribute name");
  }
  const TemplateValue* name = arguments.Get(before, "");
  if (name != nullptr && !name->is_string()) return interpreter.Fail("a test is named by a string");
  const TemplateArguments rest = Rest(arguments, before + 1);
  TemplateValue::List selected;
  for (TemplateValue& item : ItemsOf(interpreter, input)) {
    const TemplateValue value =
        kAttribute ? interpreter.AttributePath(item, arguments.positional[0]) : item;
    if (interpreter.failed() || !interpreter.Scan(1)) return {};
    const bool holds =
        name == nullptr ? value.Truthy() : interpreter.Test(name->string(), value, rest);
    if (holds == kKeep) selected.push_back(std::move(item));
  }
  return interpreter.Sequence(Kind::kGenerator, std::move(selected));
}

TemplateValue Map(Interpreter& interpreter, const TemplateValue& input,
                  const TemplateArguments& arguments) {
  const TemplateValue* attribute =
      arguments.positional.empty() ? arguments.Get(0, "attribute") : nullptr;
  const TemplateValue* fallback = arguments.Get(1, "default");
  const TemplateValue* name = arguments.Get(0, "");
  if (attribute == nullptr && (name == nullptr || !name->is_string())) {
    return interpreter.Fail("map requires a filter argument");
  }
  const RenderContext::Depth depth(interpreter);  // a filter of map may be map
  if (!depth) return {};
  const TemplateArguments rest = Rest(arguments, 1);
  TemplateValue::List mapped;
  for (const TemplateValue& item : ItemsOf(interpreter, input)) {
    if (interpreter.failed() || !interpreter.Scan(1)) return {};
    TemplateValue value;
    if (attribute == nullptr) {
      value = interpreter.Filter(name->string(), item, rest);
    } else {
      value = interpreter.AttributePath(item, *attribute);
      if (value.is_undefined() && fallback != nullptr) value = *fallback;
    }
    mapped.push_back(std::move(value));
  }
  return interpreter.Sequence(Kind::kGenerator, std::move(mapped));
}

TemplateValue Default(Interpreter&, const TemplateValue& input,
                      const TemplateArguments& arguments) {
  const TemplateValue* fallback = arguments.Get(0, "default_value");
  const bool boolean = FlagArgument(arguments, 1, "boolean", false);
  if (!input.is_undefined() && (!boolean || input.Truthy())) return input;
  return fallback == nullptr ? TemplateValue("") : *fallback;
}

TemplateValue AttributeFilter(Interpreter& interpreter, const TemplateValue& input,
                              const TemplateArguments& arguments) {
  return interpreter.Attribute(input, TextArgument(interpreter, arguments, 0, "name", ""));
}

TemplateValue Absolute(Interpreter& interpreter, const TemplateValue& input,
                       const TemplateArguments&) {
  if (input.is_float()) return TemplateValue(std::abs(input.number()));
  if (!input.is_number()) return interpreter.Fail("abs takes a number");
  if (input.integer() == std::numeric_limits<int64_t>::min()) {
    return interpreter.Fail("an integer does not fit in 64 bits");
  }
  return TemplateValue(std::abs(input.integer()));
}

TemplateValue FromFloat(double number, const TemplateValue& fallback) {
  if (!(std::abs(number) < 9.2e18)) return fallback;
  return TemplateValue(static_cast<int64_t>(number));
}

TemplateValue ToInteger(Interpreter& interpreter, const TemplateValue& input,
                        const TemplateArguments& arguments) {
  const TemplateValue fallback(IntegerArgument(interpreter, arguments, 0, "default", 0));
  if (input.is_float()) return FromFloat(input.number(), fallback);
  if (input.is_number()) return TemplateValue(input.integer());
  if (input.is_undefined()) return interpreter.Fail(input.why_undefined());
  if (!input.is_string()) return fallback;
  const std::string text(Strip(input.string(), std::nullopt, StripSide::kBoth));
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return TemplateValue(integer);
  double number = 0;
  return absl::SimpleAtod(text, &number) ? FromFloat(number, fallback) : fallback;
}

TemplateValue ToFloat(Interpreter& interpreter, const TemplateValue& input,
                      const TemplateArguments& arguments) {
  const TemplateValue* fallback = arguments.Get(0, "default");
  if (input.is_number()) return TemplateValue(input.number());
  if (input.is_undefined()) return interpreter.Fail(input.why_undefined());
  double number = 0;
  if (input.is_string()) {
    const std::string text(Strip(input.string(), std::nullopt, StripSide::kBoth));
    if (absl::SimpleAtod(text, &number)) return TemplateValue(number);
  }
  return fallback == nullptr ? TemplateValue(0.0) : *fallback;
}

TemplateValue Round(Interpreter& interpreter, const TemplateValue& input,
                    const TemplateArguments& arguments) {
  if (!input.is_number()) return interpreter.Fail("round takes a number");
  const int64_t digits =
      std::clamp<int64_t>(IntegerArgument(interpreter, arguments, 0, "precision", 0), -300, 300);
  const std::string method = TextArgument(interpreter, arguments, 1, "method", "common");
  if (method == "common" && !input.is_float()) return input;
  const double number = input.number();
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (method == "ceil") return TemplateValue(std::ceil(number * scale) / scale);
  if (method == "floor") return TemplateValue(std::floor(number * scale) / scale);
  if (method != "common") return interpreter.Fail("method must be common, ceil or floor");
  // Correct to the last digit, as Python's round: through the decimal form.
  if (digits >= 0 && digits < 20 && std::abs(number) < 1e15) {
    double rounded = 0;
    const std::string decimal = absl::StrFormat("%.*f", static_cast<int>(digits), number);
    if (absl::SimpleAtod(decimal, &rounded)) return TemplateValue(rounded);
  }
  if (digits >= 20 || !std::isfinite(number)) return TemplateValue(number);
  return TemplateValue(std::nearbyint(number * scale) / scale);
}

}  // namespace

std::span<const Builtin> SelectionFilters() {
  static constexpr Builtin kFilters[] = {
      {"map", Map},
      {"reject", Select<false, false>},
      {"rejectattr", Select<false, true>},
      {"select", Select<true, false>},
      {"selectattr", Select<true, true>},
  };
  return kFilters;
}

std::span<const Builtin> NumberFilters() {
  static constexpr Builtin kFilters[] = {
      {"abs", Absolute},  {"attr", AttributeFilter}, {"d", Default},   {"default", Default},
      {"float", ToFloat}, {"int", ToInteger},        {"round", Round},
  };
  return kFilters;
}

}  // namespace hexad
