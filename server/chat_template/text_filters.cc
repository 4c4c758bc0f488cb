#include <algorithm>

#include "absl/strings/str_format.h"
#include "server/chat_template/builtins.h"
#include "server/chat_template/text_ops.h"
#include "server/chat_template/value_text.h"

namespace hexad {
namespace {

constexpr int64_t kMaxIndent = 100;

template <std::string (*kMap)(std::string_view)>
TemplateValue MapFilter(Interpreter& interpreter, const TemplateValue& input,
                        const TemplateArguments&) {
  return interpreter.Text(kMap(interpreter.ToText(input)));
}

TemplateValue String(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments&) {
  return input.is_string() ? input : interpreter.Text(interpreter.ToText(input));
}

TemplateValue Trim(Interpreter& interpreter, const TemplateValue& input,
                   const TemplateArguments& arguments) {
  const std::string text = interpreter.ToText(input);
  const TemplateValue* characters = arguments.Get(0, "chars");
  if (characters == nullptr || characters->is_none()) {
    return interpreter.Text(std::string(Strip(text, std::nullopt, StripSide::kBoth)));
  }
  const std::string set = TextArgument(interpreter, arguments, 0, "chars", "");
  if (!interpreter.Scan(text.size() * (set.size() + 1))) return {};
  return interpreter.Text(std::string(Strip(text, set, StripSide::kBoth)));
}

TemplateValue Escape(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments&) {
  std::string escaped;
  for (char c : interpreter.ToText(input)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '"':
        escaped += "&#34;";
        break;
      default:
        escaped.push_back(c);
    }
  }
  return interpreter.Text(std::move(escaped));
}

TemplateValue Replace(Interpreter& interpreter, const TemplateValue& input,
                      const TemplateArguments& arguments) {
  const TemplateValue text = interpreter.Text(interpreter.ToText(input));
  if (interpreter.failed()) return {};
  return FindMethod(text, "replace")(interpreter, text, arguments);
}

TemplateValue Indent(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments& arguments) {
  std::string prefix;
  const TemplateValue* width = arguments.Get(0, "width");
  if (width != nullptr && width->is_string()) {
    prefix = width->string();
  } else {
    const int64_t spaces = IntegerArgument(interpreter, arguments, 0, "width", 4);
    if (spaces > kMaxIndent) return interpreter.Fail("an indent of more than 100 spaces");
    prefix.assign(static_cast<size_t>(std::max<int64_t>(spaces, 0)), ' ');
  }
  const bool first = FlagArgument(arguments, 1, "first", false);
  const bool blank = FlagArgument(arguments, 2, "blank", false);
  const std::string text = interpreter.ToText(input);
  std::string indented;
  size_t index = 0;
  for (std::string_view line : SplitText(text, "\n", -1)) {
    if (index > 0) indented.push_back('\n');
    if (index == 0 ? first : (blank || !line.empty())) indented += prefix;
    indented += line;
    ++index;
    if (indented.size() > interpreter.bytes_left()) break;
  }
  return interpreter.Text(std::move(indented));
}

TemplateValue Center(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments& arguments) {
  const std::string text = interpreter.ToText(input);
  const int64_t width = IntegerArgument(interpreter, arguments, 0, "width", 80);
  const int64_t missing = width - CountCharacters(text);
  if (missing <= 0) return interpreter.Text(text);
  if (!interpreter.Spend(static_cast<size_t>(missing))) return {};
  const auto left = static_cast<size_t>(missing / 2 + (missing & width & 1));
  return interpreter.Text(std::string(left, ' ') + text +
                          std::string(static_cast<size_t>(missing) - left, ' '));
}

TemplateValue Truncate(Interpreter& interpreter, const TemplateValue& input,
                       const TemplateArguments& arguments) {
  const std::string text = interpreter.ToText(input);
  const int64_t length = IntegerArgument(interpreter, arguments, 0, "length", 255);
  const bool kill_words = FlagArgument(arguments, 1, "killwords", false);
  const std::string end = TextArgument(interpreter, arguments, 2, "end", "...");
  const int64_t leeway = IntegerArgument(interpreter, arguments, 3, "leeway", 5);
  if (!interpreter.Spend(text.size())) return {};
  const auto characters = SplitCharacters(text);
  const auto size = static_cast<int64_t>(characters.size());
  if (length < 0 || size <= length || size - length <= leeway) return interpreter.Text(text);
  std::string kept;
  for (int64_t i = 0; i < length - CountCharacters(end); ++i) {
    kept += characters[static_cast<size_t>(i)];
  }
  if (!kill_words) kept = kept.substr(0, kept.rfind(' '));
  return interpreter.Text(kept + end);
}

TemplateValue WordCount(Interpreter& interpreter, const TemplateValue& input,
                        const TemplateArguments&) {
  const std::string text = interpreter.ToText(input);
  return TemplateValue(static_cast<int64_t>(SplitWhitespace(text, -1).size()));
}

TemplateValue Join(Interpreter& interpreter, const TemplateValue& input,
                   const TemplateArguments& arguments) {
  const std::string separator = TextArgument(interpreter, arguments, 0, "d", "");
  const TemplateValue* attribute = arguments.Get(1, "attribute");
  std::string joined;
  bool first = true;
  for (const TemplateValue& item : interpreter.Iterate(input)) {
    if (!std::exchange(first, false)) joined += separator;
    joined += interpreter.ToText(
        attribute == nullptr ? item : interpreter.AttributePath(item, *attribute));
    if (interpreter.failed() || !interpreter.Spend(separator.size())) return {};
  }
  return interpreter.Text(std::move(joined));
}

TemplateValue ToJson(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments& arguments) {
  // transformers: tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)
  JsonStyle style;
  style.ensure_ascii = FlagArgument(arguments, 0, "ensure_ascii", false);
  const TemplateValue* indent = arguments.Get(1, "indent");
  if (indent != nullptr && !indent->is_none()) {
    if (indent->is_string()) {
      style.indent_text = indent->string();
    } else {
      style.indent = static_cast<int>(std::clamp<int64_t>(
          IntegerArgument(interpreter, arguments, 1, "indent", 0), 0, kMaxIndent + 1));
    }
    if (style.indent > kMaxIndent || style.indent_text.size() > kMaxIndent) {
      return interpreter.Fail("an indent of more than 100 characters");
    }
    style.item_separator = ",";
  }
  const TemplateValue* separators = arguments.Get(2, "separators");
  if (separators != nullptr && separators->is_sequence()) {
    const auto& pair = separators->items();
    if (pair.size() != 2) return interpreter.Fail("separators are a pair of strings");
    style.item_separator = interpreter.ToText(pair[0]);
    style.key_separator = interpreter.ToText(pair[1]);
  }
  style.sort_keys = FlagArgument(arguments, 3, "sort_keys", false);
  std::string json;
  std::string error;
  if (!AppendJson(input, style, interpreter.bytes_left(), json, error) && !error.empty()) {
    return interpreter.Fail(error);
  }
  return interpreter.Text(std::move(json));
}

// Python's %: %s, %r, %d, %i and %f, with neither width nor flags.
TemplateValue Format(Interpreter& interpreter, const TemplateValue& input,
                     const TemplateArguments& arguments) {
  const std::string pattern = interpreter.ToText(input);
  std::string result;
  size_t used = 0;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      result.push_back(pattern[at]);
      continue;
    }
    const char type = ++at < pattern.size() ? pattern[at] : '\0';
    if (type == '%') {
      result.push_back('%');
      continue;
    }
    const TemplateValue* value = arguments.Get(used++, "");
    if (value == nullptr) return interpreter.Fail("not enough arguments for format string");
    if (type == 's') {
      result += interpreter.ToText(*value);
    } else if (type == 'r') {
      AppendRepresentation(*value, interpreter.bytes_left(), result);
    } else if ((type == 'd' || type == 'i') && value->is_number() && !value->is_float()) {
      result += std::to_string(value->integer());
    } else if (type == 'f' && value->is_number()) {
      result += absl::StrFormat("%f", value->number());
    } else {
      return interpreter.Fail("format takes only %s, %r, %d, %i and %f, and values that fit");
    }
    if (interpreter.failed() || result.size() > interpreter.bytes_left()) break;
  }
  if (!interpreter.failed() && used < arguments.positional.size()) {
    return interpreter.Fail("not all arguments converted during string formatting");
  }
  return interpreter.Text(std::move(result));
}

TemplateValue UrlEncode(Interpreter& interpreter, const TemplateValue& input,
                        const TemplateArguments&) {
  std::string encoded;
  for (unsigned char c : interpreter.ToText(input)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || c == '/';
    encoded += plain ? std::string(1, static_cast<char>(c)) : absl::StrFormat("%%%02X", c);
  }
  return interpreter.Text(std::move(encoded));
}

}  // namespace

std::span<const Builtin> TextFilters() {
  static constexpr Builtin kFilters[] = {
      {"capitalize", MapFilter<CapitalizeText>},
      {"center", Center},
      {"e", Escape},
      {"escape", Escape},
      {"forceescape", Escape},
      {"format", Format},
      {"indent", Indent},
      {"join", Join},
      {"lower", MapFilter<LowerText>},
      {"replace", Replace},
      // Marks nothing: Jinja would escape what is joined to such a text, which no prompt wants.
      {"safe", String},
      {"string", String},
      {"title", MapFilter<TitleText>},
      {"tojson", ToJson},
      {"trim", Trim},
      {"truncate", Truncate},
      {"upper", MapFilter<UpperText>},
      {"urlencode", UrlEncode},
      {"wordcount", WordCount},
  };
  return kFilters;
}

}  // namespace hexad
