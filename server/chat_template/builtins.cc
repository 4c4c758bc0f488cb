#include "server/chat_template/builtins.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "server/chat_template/objects.h"

namespace hexad {
namespace {

using Kind = TemplateValue::Kind;
using Value = const TemplateValue&;
using Arguments = const TemplateArguments&;

// As transformers' sandbox.
constexpr int64_t kMaxRange = 100'000;

BuiltinFunction Find(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const Builtin& entry) { return name == entry.name; });
  return found == table.end() ? nullptr : found->function;
}

TemplateValue DictGet(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* key = arguments.Get(0, "");
  if (key == nullptr) return interpreter.Fail("get expected at least 1 argument, got 0");
  if (!interpreter.Scan(key->is_string() ? key->string().size() : 1)) return {};
  if (const TemplateValue* value = self.dict().Find(*key)) return *value;
  const TemplateValue* fallback = arguments.Get(1, "");
  return fallback == nullptr ? TemplateValue::None() : *fallback;
}

template <int kPart>  // 0: keys, 1: values, 2: both
TemplateValue DictView(Interpreter& interpreter, Value self, Arguments) {
  TemplateValue::List view;
  view.reserve(self.dict().size());
  for (const auto& [key, value] : self.dict().entries()) {
    if (kPart == 2) {
      view.push_back(interpreter.Sequence(Kind::kTuple, {key, value}));
    } else {
      view.push_back(kPart == 0 ? key : value);
    }
  }
  return interpreter.List(std::move(view));
}

TemplateValue Copy(Interpreter&, Value self, Arguments) { return self; }

TemplateValue ListIndex(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* wanted = arguments.Get(0, "");
  if (wanted == nullptr) return interpreter.Fail("index expected at least 1 argument, got 0");
  const auto& items = self.items();
  for (size_t i = 0; i < items.size() && !interpreter.failed(); ++i) {
    if (interpreter.Same(items[i], *wanted)) return TemplateValue(static_cast<int64_t>(i));
  }
  return interpreter.Fail("the value is not in list");
}

TemplateValue ListCount(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* wanted = arguments.Get(0, "");
  if (wanted == nullptr) return interpreter.Fail("count() takes exactly one argument (0 given)");
  int64_t count = 0;
  for (Value item : self.items()) count += interpreter.Same(item, *wanted) ? 1 : 0;
  return TemplateValue(count);
}

TemplateValue Range(Interpreter& interpreter, Arguments arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3 ||
      !std::all_of(given.begin(), given.end(),
                   [](Value value) { return value.is_int() || value.is_bool(); })) {
    return interpreter.Fail("range takes 1 to 3 integers");
  }
  const int64_t start = given.size() > 1 ? given[0].integer() : 0;
  const int64_t stop = given.size() > 1 ? given[1].integer() : given[0].integer();
  const int64_t step = given.size() > 2 ? given[2].integer() : 1;
  if (step == 0) return interpreter.Fail("range() arg 3 must not be zero");
  const auto too_large = [&] {
    return interpreter.Fail(
        absl::StrFormat("Range too big. The sandbox blocks ranges larger than %d.", kMaxRange));
  };
  int64_t distance = 0;
  if (__builtin_sub_overflow(stop, start, &distance)) return too_large();
  if ((distance > 0) != (step > 0) || distance == 0) return interpreter.List({});
  const auto magnitude = [](int64_t value) {
    return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  };
  const uint64_t count = (magnitude(distance) - 1) / magnitude(step) + 1;
  if (count > static_cast<uint64_t>(kMaxRange)) return too_large();
  TemplateValue::List numbers;
  numbers.reserve(count);
  int64_t number = start;
  for (uint64_t i = 0; i < count; ++i) {
    numbers.emplace_back(number);
    if (i + 1 < count) number += step;
  }
  return interpreter.List(std::move(numbers));
}

// dict(...) and namespace(...): an optional dict or list of pairs, then named values.
TemplateDict CollectNamed(Interpreter& interpreter, Arguments arguments) {
  TemplateDict dict;
  if (const TemplateValue* base = arguments.Get(0, "")) {
    if (base->is_dict()) {
      if (interpreter.Spend(base->dict().size() * 128)) dict = base->dict();
    } else {
      for (Value pair : interpreter.Iterate(*base)) {
        const TemplateValue::List two = interpreter.Iterate(pair);
        if (two.size() != 2 || !dict.Set(two[0], two[1])) {
          interpreter.Fail("a dict is made of pairs of a key and a value");
          return {};
        }
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.Set(TemplateValue(name), value);
  return dict;
}

TemplateValue MakeDict(Interpreter& interpreter, Arguments arguments) {
  return interpreter.Dict(CollectNamed(interpreter, arguments));
}

TemplateValue MakeNamespace(Interpreter& interpreter, Arguments arguments) {
  return interpreter.MakeNamespace(CollectNamed(interpreter, arguments));
}

TemplateValue RaiseException(Interpreter& interpreter, Arguments arguments) {
  const TemplateValue* message = arguments.Get(0, "message");
  std::string text = message == nullptr ? std::string() : interpreter.ToText(*message);
  if (text.size() > 4096) text.resize(4096);
  return interpreter.FailPlainly(text.empty() ? "the chat template refuses this chat" : text);
}

template <typename Table>
const absl::flat_hash_map<std::string, BuiltinFunction>& Index(const Table& tables) {
  static const auto* const index = [&] {
    auto* made = new absl::flat_hash_map<std::string, BuiltinFunction>;
    for (const auto& table : tables) {
      for (const Builtin& entry : table) made->emplace(entry.name, entry.function);
    }
    return made;
  }();
  return *index;
}

}  // namespace

std::span<const Builtin> DictMethods() {
  static constexpr Builtin kMethods[] = {{"copy", Copy},
                                         {"get", DictGet},
                                         {"items", DictView<2>},
                                         {"keys", DictView<0>},
                                         {"values", DictView<1>}};
  return kMethods;
}

std::span<const Builtin> ListMethods() {
  static constexpr Builtin kMethods[] = {
      {"copy", Copy}, {"count", ListCount}, {"index", ListIndex}};
  return kMethods;
}

BuiltinFunction FindFilter(std::string_view name) {
  const auto& index =
      Index(std::array{TextFilters(), SequenceFilters(), SelectionFilters(), NumberFilters()});
  const auto found = index.find(std::string(name));
  return found == index.end() ? nullptr : found->second;
}

BuiltinFunction FindMethod(const TemplateValue& value, std::string_view name) {
  if (value.is_string()) return Find(TextMethods(), name);
  if (value.is_dict()) return Find(DictMethods(), name);
  if (value.kind() == Kind::kList || value.kind() == Kind::kTuple) return Find(ListMethods(), name);
  return nullptr;
}

bool IsForbiddenMethod(const TemplateValue& value, std::string_view name) {
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
  const auto among = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return value.is_dict() ? among(kDict) : value.kind() == Kind::kList && among(kList);
}

void DefineGlobals(TemplateScope& scope, absl::Time now) {
  const auto define = [&scope](const char* name, FunctionObject::Body body) {
    scope.Set(name, TemplateValue(std::make_shared<FunctionObject>(name, std::move(body))));
  };
  define("range", Range);
  define("dict", MakeDict);
  define("namespace", MakeNamespace);
  define("raise_exception", RaiseException);
  define("strftime_now", [now](Interpreter& interpreter, Arguments arguments) {
    const std::string format = TextArgument(interpreter, arguments, 0, "format", "");
    if (format.size() > 1024) return interpreter.Fail("a time format of more than 1024 bytes");
    return interpreter.Text(absl::FormatTime(format, now, absl::UTCTimeZone()));
  });
}

int64_t IntegerArgument(Interpreter& interpreter, const TemplateArguments& arguments, size_t place,
                        std::string_view name, int64_t absent) {
  const TemplateValue* value = arguments.Get(place, name);
  if (value == nullptr || value->is_none()) return absent;
  if (value->is_int() || value->is_bool()) return value->integer();
  interpreter.Fail(absl::StrFormat("an integer is needed, not '%s'", value->TypeName()));
  return absent;
}

std::string TextArgument(Interpreter& interpreter, const TemplateArguments& arguments, size_t place,
                         std::string_view name, std::string_view absent) {
  const TemplateValue* value = arguments.Get(place, name);
  if (value == nullptr) return std::string(absent);
  if (value->is_string()) {
    return interpreter.Scan(value->string().size()) ? value->string() : std::string();
  }
  interpreter.Fail(value->is_undefined()
                       ? value->why_undefined()
                       : absl::StrFormat("a string is needed, not '%s'", value->TypeName()));
  return {};
}

bool FlagArgument(const TemplateArguments& arguments, size_t place, std::string_view name,
                  bool absent) {
  const TemplateValue* value = arguments.Get(place, name);
  return value == nullptr ? absent : value->Truthy();
}

TemplateValue TextList(Interpreter& interpreter, const std::vector<std::string_view>& parts) {
  TemplateValue::List list;
  list.reserve(parts.size());
  for (std::string_view part : parts) {
    list.push_back(interpreter.Text(std::string(part)));
    if (interpreter.failed()) return {};
  }
  return interpreter.List(std::move(list));
}

}  // namespace hexad
