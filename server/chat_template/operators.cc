#include "server/chat_template/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "server/chat_template/text_ops.h"

namespace hexad {
namespace {

using Kind = TemplateValue::Kind;

TemplateValue Overflow(RenderContext& context) {
  return context.Fail("an integer does not fit in 64 bits");
}

TemplateValue Unsupported(RenderContext& context, const std::string& op, const TemplateValue& left,
                          const TemplateValue& right) {
  for (const TemplateValue* side : {&left, &right}) {
    if (side->is_undefined()) return context.Fail(side->why_undefined());
  }
  if (op == "+" && left.is_string()) {
    return context.Fail(
        absl::StrFormat("can only concatenate str (not \"%s\") to str", right.TypeName()));
  }
  return context.Fail(absl::StrFormat("unsupported operand type(s) for %s: '%s' and '%s'", op,
                                      left.TypeName(), right.TypeName()));
}

TemplateValue IntegerPower(RenderContext& context, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return context.Fail("0.0 cannot be raised to a negative power");
    return TemplateValue(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result)) {
      return Overflow(context);
    }
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return Overflow(context);
  }
  return TemplateValue(result);
}

TemplateValue IntegerArithmetic(RenderContext& context, const std::string& op, int64_t a,
                                int64_t b) {
  int64_t result = 0;
  if (op == "+") {
    return __builtin_add_overflow(a, b, &result) ? Overflow(context) : TemplateValue(result);
  }
  if (op == "-") {
    return __builtin_sub_overflow(a, b, &result) ? Overflow(context) : TemplateValue(result);
  }
  if (op == "*") {
    return __builtin_mul_overflow(a, b, &result) ? Overflow(context) : TemplateValue(result);
  }
  if (op == "**") return IntegerPower(context, a, b);
  if (b == 0) return context.Fail("division by zero");
  if (op == "/") return TemplateValue(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {  // the smallest integer has no positive counterpart
    if (op == "%") return TemplateValue(0);
    return a == std::numeric_limits<int64_t>::min() ? Overflow(context) : TemplateValue(-a);
  }
  const bool inexact = a % b != 0 && ((a % b < 0) != (b < 0));
  if (op == "//") return TemplateValue(a / b - (inexact ? 1 : 0));
  return TemplateValue(a % b + (inexact ? b : 0));
}

TemplateValue FloatArithmetic(RenderContext& context, const std::string& op, double a, double b) {
  if (op == "+") return TemplateValue(a + b);
  if (op == "-") return TemplateValue(a - b);
  if (op == "*") return TemplateValue(a * b);
  if (op == "**") return TemplateValue(std::pow(a, b));
  if (b == 0) return context.Fail("float division by zero");
  if (op == "/") return TemplateValue(a / b);
  const double floor = std::floor(a / b);
  return TemplateValue(op == "//" ? floor : a - floor * b);
}

TemplateValue Repeat(RenderContext& context, const TemplateValue& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (value.is_string()) {
    const std::string& unit = value.string();
    if (unit.empty() || times == 0) return TemplateValue("");
    if (static_cast<uint64_t>(times) > context.bytes_left() / unit.size()) {
      context.Spend(std::numeric_limits<size_t>::max());
      return {};
    }
    std::string text;
    text.reserve(unit.size() * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i) text += unit;
    return context.Text(std::move(text));
  }
  const auto& items = value.items();
  const size_t unit_bytes = std::max<size_t>(items.size(), 1) * sizeof(TemplateValue);
  if (static_cast<uint64_t>(times) > context.bytes_left() / unit_bytes) {
    context.Spend(std::numeric_limits<size_t>::max());
    return {};
  }
  TemplateValue::List repeated;
  for (int64_t i = 0; i < times && !items.empty(); ++i) {
    repeated.insert(repeated.end(), items.begin(), items.end());
  }
  return context.Sequence(value.kind(), std::move(repeated));
}

bool IsRepeatable(const TemplateValue& value) {
  return value.is_string() || value.kind() == Kind::kList || value.kind() == Kind::kTuple;
}

// Start, stop and step as Python makes them fit the length.
struct Bounds {
  int64_t start;
  int64_t stop;
  int64_t step;
};

std::optional<Bounds> FitBounds(RenderContext& context, int64_t length, const TemplateValue& start,
                                const TemplateValue& stop, const TemplateValue& step) {
  for (const TemplateValue* bound : {&start, &stop, &step}) {
    if (!bound->is_undefined() && !bound->is_none() && !bound->is_int() && !bound->is_bool()) {
      context.Fail("slice indices must be integers or None");
      return std::nullopt;
    }
  }
  const auto given = [](const TemplateValue& bound) { return bound.is_int() || bound.is_bool(); };
  Bounds bounds{0, 0, given(step) ? step.integer() : 1};
  if (bounds.step == 0) {
    context.Fail("slice step cannot be zero");
    return std::nullopt;
  }
  // Any step beyond the length selects one item; this keeps the sums below small.
  bounds.step = std::clamp<int64_t>(bounds.step, -length - 1, length + 1);
  const bool forward = bounds.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? length : length - 1;
  const auto fit = [&](const TemplateValue& bound, int64_t absent) {
    if (!given(bound)) return absent;
    int64_t index = std::clamp<int64_t>(bound.integer(), -length - 1, length);
    if (index < 0) index += length;
    return std::clamp(index, low, high);
  };
  bounds.start = fit(start, forward ? low : high);
  bounds.stop = fit(stop, forward ? high : low);
  return bounds;
}

}  // namespace

TemplateValue Arithmetic(RenderContext& context, const std::string& op, const TemplateValue& left,
                         const TemplateValue& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_float() || right.is_float()) {
      return FloatArithmetic(context, op, left.number(), right.number());
    }
    return IntegerArithmetic(context, op, left.integer(), right.integer());
  }
  if (op == "+" && left.is_string() && right.is_string()) {
    if (!context.Scan(left.string().size() + right.string().size())) return {};
    return context.Text(left.string() + right.string());
  }
  if (op == "+" && left.kind() == right.kind() && left.is_sequence() &&
      left.kind() != Kind::kGenerator) {
    TemplateValue::List joined = left.items();
    joined.insert(joined.end(), right.items().begin(), right.items().end());
    return context.Sequence(left.kind(), std::move(joined));
  }
  if (op == "*" && IsRepeatable(left) && (right.is_int() || right.is_bool())) {
    return Repeat(context, left, right.integer());
  }
  if (op == "*" && IsRepeatable(right) && (left.is_int() || left.is_bool())) {
    return Repeat(context, right, left.integer());
  }
  return Unsupported(context, op, left, right);
}

TemplateValue Negate(RenderContext& context, const TemplateValue& value) {
  if (value.is_float()) return TemplateValue(-value.number());
  if (!value.is_number()) {
    return context.Fail(value.is_undefined() ? value.why_undefined()
                                             : absl::StrFormat("bad operand type for unary -: '%s'",
                                                               value.TypeName()));
  }
  return IntegerArithmetic(context, "-", 0, value.integer());
}

int Order(RenderContext& context, const TemplateValue& left, const TemplateValue& right,
          const std::string& op) {
  if (!context.Scan(1)) return 0;
  if (left.is_number() && right.is_number()) {
    if (left.is_float() || right.is_float()) {
      const double a = left.number();
      const double b = right.number();
      return a < b ? -1 : a > b ? 1 : 0;
    }
    return left.integer() < right.integer() ? -1 : left.integer() > right.integer() ? 1 : 0;
  }
  if (left.is_string() && right.is_string()) {
    if (!context.Scan(std::min(left.string().size(), right.string().size()))) return 0;
    const int order = left.string().compare(right.string());  // UTF-8 sorts as its characters do
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (left.kind() == right.kind() && left.is_sequence()) {
    const auto& a = left.items();
    const auto& b = right.items();
    for (size_t i = 0; i < a.size() && i < b.size() && !context.failed(); ++i) {
      if (const int order = Order(context, a[i], b[i], op); order != 0) return order;
    }
    return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
  }
  for (const TemplateValue* side : {&left, &right}) {
    if (side->is_undefined()) context.Fail(side->why_undefined());
  }
  context.Fail(absl::StrFormat("'%s' not supported between instances of '%s' and '%s'", op,
                               left.TypeName(), right.TypeName()));
  return 0;
}

bool Contains(RenderContext& context, const TemplateValue& container, const TemplateValue& item) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString:
      if (!item.is_string()) {
        context.Fail(item.is_undefined()
                         ? item.why_undefined()
                         : absl::StrFormat("'in <string>' requires string as left operand, not %s",
                                           item.TypeName()));
        return false;
      }
      return context.Scan(container.string().size()) &&
             FindText(container.string(), item.string()) != std::string_view::npos;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kGenerator:
      return std::any_of(container.items().begin(), container.items().end(),
                         [&](const auto& other) { return context.Same(other, item); });
    case Kind::kDict:
      return context.Scan(item.is_string() ? item.string().size() : 1) &&
             container.dict().Find(item) != nullptr;
    default:
      context.Fail(absl::StrFormat("argument of type '%s' is not iterable", container.TypeName()));
      return false;
  }
}

bool CompareValues(RenderContext& context, const std::string& op, const TemplateValue& left,
                   const TemplateValue& right) {
  if (op == "==") return context.Same(left, right);
  if (op == "!=") return !context.Same(left, right);
  if (op == "in") return Contains(context, right, left);
  if (op == "not in") return !Contains(context, right, left);
  const bool nan = (left.is_float() && std::isnan(left.number())) ||
                   (right.is_float() && std::isnan(right.number()));
  const int order = Order(context, left, right, op);
  if (nan) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

TemplateValue Slice(RenderContext& context, const TemplateValue& value, const TemplateValue& start,
                    const TemplateValue& stop, const TemplateValue& step) {
  if (value.is_string()) {
    if (!context.Scan(value.string().size() * sizeof(std::string_view))) return {};
    const auto characters = SplitCharacters(value.string());
    const auto bounds =
        FitBounds(context, static_cast<int64_t>(characters.size()), start, stop, step);
    if (!bounds) return {};
    std::string text;
    for (int64_t i = bounds->start; bounds->step > 0 ? i < bounds->stop : i > bounds->stop;
         i += bounds->step) {
      text += characters[static_cast<size_t>(i)];
    }
    return context.Text(std::move(text));
  }
  if (value.kind() == Kind::kList || value.kind() == Kind::kTuple) {
    const auto& items = value.items();
    const auto bounds = FitBounds(context, static_cast<int64_t>(items.size()), start, stop, step);
    if (!bounds) return {};
    TemplateValue::List taken;
    for (int64_t i = bounds->start; bounds->step > 0 ? i < bounds->stop : i > bounds->stop;
         i += bounds->step) {
      taken.push_back(items[static_cast<size_t>(i)]);
    }
    return context.Sequence(value.kind(), std::move(taken));
  }
  if (value.is_undefined()) return context.Fail(value.why_undefined());
  return TemplateValue::Undefined(
      absl::StrFormat("'%s' object is not subscriptable", value.TypeName()));
}

}  // namespace hexad
