#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/chat_template/builtins.h"
#include "server/chat_template/operators.h"
#include "server/chat_template/text_ops.h"

namespace hexad {
namespace {

using Kind = TemplateValue::Kind;

TemplateValue Pair(Interpreter& interpreter, TemplateValue first, TemplateValue second) {
  return interpreter.Sequence(Kind::kTuple, {std::move(first), std::move(second)});
}

TemplateValue Length(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments&) {
  if (input.is_string()) {
    interpreter.Scan(input.string().size());
    return TemplateValue(CountCharacters(input.string()));
  }
  if (input.is_undefined()) return TemplateValue(0);
  if (input.is_dict()) return TemplateValue(static_cast<int64_t>(input.dict().size()));
  if (input.is_sequence() && input.kind() != Kind::kGenerator) {
    return TemplateValue(static_cast<int64_t>(input.items().size()));
  }
  return interpreter.Fail(absl::StrFormat("object of type '%s' has no len()", input.TypeName()));
}

TemplateValue First(Interpreter& interpreter, const TemplateValue& input,
                    const TemplateArguments&) {
  TemplateValue::List items = interpreter.Iterate(input);
  return items.empty() ? TemplateValue::Undefined("No first item, sequence was empty.")
                       : std::move(items.front());
}

TemplateValue Last(Interpreter& interpreter, const TemplateValue& input, const TemplateArguments&) {
  TemplateValue::List items = interpreter.Iterate(input);
  return items.empty() ? TemplateValue::Undefined("No last item, sequence was empty.")
                       : std::move(items.back());
}

TemplateValue ToList(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments&) {
  return interpreter.List(interpreter.Iterate(input));
}

TemplateValue Items(Interpreter& interpreter, const TemplateValue& input,
                    const TemplateArguments& arguments) {
  if (input.is_undefined()) return interpreter.Sequence(Kind::kGenerator, {});
  if (!input.is_dict()) return interpreter.Fail("Can only get item pairs from a mapping.");
  return FindMethod(input, "items")(interpreter, input, arguments);
}

TemplateValue Reverse(Interpreter& interpreter, const TemplateValue& input,
                      const TemplateArguments&) {
  if (input.is_string()) {
    std::string reversed;
    if (!interpreter.Spend(input.string().size())) return {};
    const auto characters = SplitCharacters(input.string());
    for (auto it = characters.rbegin(); it != characters.rend(); ++it) reversed += *it;
    return interpreter.Text(std::move(reversed));
  }
  TemplateValue::List items = interpreter.Iterate(input);
  std::reverse(items.begin(), items.end());
  return interpreter.Sequence(Kind::kGenerator, std::move(items));
}

// What sorting compares: the item or an attribute of it, without case unless asked.
struct SortKey {
  TemplateValue key;
  TemplateValue item;
};

TemplateValue Folded(Interpreter& interpreter, TemplateValue value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return interpreter.Text(LowerText(value.string()));
}

// Merge sort that survives an order which fails half-way.
void SortKeys(Interpreter& interpreter, std::vector<SortKey>& keys, bool reverse) {
  std::stable_sort(keys.begin(), keys.end(), [&](const SortKey& a, const SortKey& b) {
    if (interpreter.failed()) return false;
    const int order = Order(interpreter, a.key, b.key);
    return reverse ? order > 0 : order < 0;
  });
}

TemplateValue Sort(Interpreter& interpreter, const TemplateValue& input,
                   const TemplateArguments& arguments) {
  const bool reverse = FlagArgument(arguments, 0, "reverse", false);
  const bool case_sensitive = FlagArgument(arguments, 1, "case_sensitive", false);
  const TemplateValue* attribute = arguments.Get(2, "attribute");
  std::vector<SortKey> keys;
  for (TemplateValue& item : interpreter.Iterate(input)) {
    TemplateValue key = attribute == nullptr || attribute->is_none()
                            ? item
                            : interpreter.AttributePath(item, *attribute);
    keys.push_back({Folded(interpreter, std::move(key), case_sensitive), std::move(item)});
    if (interpreter.failed()) return {};
  }
  SortKeys(interpreter, keys, reverse);
  TemplateValue::List sorted;
  for (SortKey& key : keys) sorted.push_back(std::move(key.item));
  return interpreter.List(std::move(sorted));
}

TemplateValue DictSort(Interpreter& interpreter, const TemplateValue& input,
                       const TemplateArguments& arguments) {
  if (!input.is_dict()) {
    return interpreter.Fail(
        input.is_undefined()
            ? input.why_undefined()
            : absl::StrFormat("'%s object' has no attribute 'items'", input.TypeName()));
  }
  const bool case_sensitive = FlagArgument(arguments, 0, "case_sensitive", false);
  const std::string by = TextArgument(interpreter, arguments, 1, "by", "key");
  const bool reverse = FlagArgument(arguments, 2, "reverse", false);
  if (by != "key" && by != "value") {
    return interpreter.Fail("You can only sort by either \"key\" or \"value\"");
  }
  std::vector<SortKey> keys;
  for (const auto& [key, value] : input.dict().entries()) {
    keys.push_back({Folded(interpreter, by == "key" ? key : value, case_sensitive),
                    Pair(interpreter, key, value)});
  }
  SortKeys(interpreter, keys, reverse);
  TemplateValue::List sorted;
  for (SortKey& key : keys) sorted.push_back(std::move(key.item));
  return interpreter.List(std::move(sorted));
}

TemplateValue Unique(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments& arguments) {
  const bool case_sensitive = FlagArgument(arguments, 0, "case_sensitive", false);
  const TemplateValue* attribute = arguments.Get(1, "attribute");
  TemplateDict seen;
  TemplateValue::List unique;
  for (TemplateValue& item : interpreter.Iterate(input)) {
    TemplateValue key = attribute == nullptr ? item : interpreter.AttributePath(item, *attribute);
    key = Folded(interpreter, std::move(key), case_sensitive);
    if (interpreter.failed()) return {};
    const size_t before = seen.size();
    if (!seen.Set(std::move(key), TemplateValue(true))) return interpreter.Fail("unhashable type");
    if (seen.size() > before) unique.push_back(std::move(item));
  }
  return interpreter.Sequence(Kind::kGenerator, std::move(unique));
}

template <int kSign>
TemplateValue Extreme(Interpreter& interpreter, const TemplateValue& input,
                      const TemplateArguments& arguments) {
  const bool case_sensitive = FlagArgument(arguments, 0, "case_sensitive", false);
  const TemplateValue* attribute = arguments.Get(1, "attribute");
  TemplateValue best = TemplateValue::Undefined("No aggregated item, sequence was empty.");
  TemplateValue best_key;
  bool first = true;
  for (TemplateValue& item : interpreter.Iterate(input)) {
    TemplateValue key = attribute == nullptr ? item : interpreter.AttributePath(item, *attribute);
    key = Folded(interpreter, std::move(key), case_sensitive);
    if (first || Order(interpreter, key, best_key) * kSign > 0) {
      best = std::move(item);
      best_key = std::move(key);
    }
    first = false;
    if (interpreter.failed()) return {};
  }
  return best;
}

TemplateValue Sum(Interpreter& interpreter, const TemplateValue& input,
                  const TemplateArguments& arguments) {
  const TemplateValue* attribute = arguments.Get(0, "attribute");
  const TemplateValue* start = arguments.Get(1, "start");
  TemplateValue sum = start == nullptr ? TemplateValue(0) : *start;
  for (const TemplateValue& item : interpreter.Iterate(input)) {
    const bool whole = attribute == nullptr || attribute->is_none();
    sum = Arithmetic(interpreter, "+", sum,
                     whole ? item : interpreter.AttributePath(item, *attribute));
    if (interpreter.failed()) return {};
  }
  return sum;
}

TemplateValue Batch(Interpreter& interpreter, const TemplateValue& input,
                    const TemplateArguments& arguments) {
  const int64_t size = IntegerArgument(interpreter, arguments, 0, "linecount", 0);
  const TemplateValue* fill = arguments.Get(1, "fill_with");
  if (size < 1) return interpreter.Fail("batch takes a size of at least 1");
  TemplateValue::List batches;
  TemplateValue::List batch;
  for (TemplateValue& item : interpreter.Iterate(input)) {
    batch.push_back(std::move(item));
    if (static_cast<int64_t>(batch.size()) == size) {
      batches.push_back(interpreter.List(std::exchange(batch, {})));
    }
  }
  if (!batch.empty()) {
    while (fill != nullptr && !fill->is_none() && static_cast<int64_t>(batch.size()) < size &&
           interpreter.Spend(sizeof(TemplateValue))) {
      batch.push_back(*fill);
    }
    batches.push_back(interpreter.List(std::move(batch)));
  }
  return interpreter.Sequence(Kind::kGenerator, std::move(batches));
}

TemplateValue GroupBy(Interpreter& interpreter, const TemplateValue& input,
                      const TemplateArguments& arguments) {
  const TemplateValue* attribute = arguments.Get(0, "attribute");
  if (attribute == nullptr) return interpreter.Fail("groupby takes an attribute");
  std::vector<SortKey> keys;
  for (TemplateValue& item : interpreter.Iterate(input)) {
    keys.push_back({interpreter.AttributePath(item, *attribute), std::move(item)});
    if (interpreter.failed()) return {};
  }
  SortKeys(interpreter, keys, false);
  TemplateValue::List groups;
  for (size_t begin = 0; begin < keys.size() && !interpreter.failed();) {
    TemplateValue::List group;
    size_t end = begin;
    while (end < keys.size() && interpreter.Same(keys[begin].key, keys[end].key)) {
      group.push_back(keys[end++].item);
    }
    groups.push_back(Pair(interpreter, keys[begin].key, interpreter.List(std::move(group))));
    begin = std::max(end, begin + 1);  // a NaN is not equal to itself
  }
  return interpreter.List(std::move(groups));
}

}  // namespace

std::span<const Builtin> SequenceFilters() {
  static constexpr Builtin kFilters[] = {
      {"batch", Batch},     {"count", Length},   {"dictsort", DictSort}, {"first", First},
      {"groupby", GroupBy}, {"items", Items},    {"last", Last},         {"length", Length},
      {"list", ToList},     {"max", Extreme<1>}, {"min", Extreme<-1>},   {"reverse", Reverse},
      {"sort", Sort},       {"sum", Sum},        {"unique", Unique},
  };
  return kFilters;
}

}  // namespace hexad
