// Methods of str.

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "engine/tokenizer/utf8.h"
#include "server/chat_template/builtins.h"
#include "server/chat_template/text_ops.h"

namespace hexad {
namespace {

using Value = const TemplateValue&;
using Arguments = const TemplateArguments&;

template <std::string (*kMap)(std::string_view)>
TemplateValue MapMethod(Interpreter& interpreter, Value self, Arguments) {
  return interpreter.Text(kMap(self.string()));
}

template <StripSide kSide>
TemplateValue StripMethod(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* characters = arguments.Get(0, "");
  if (characters == nullptr || characters->is_none()) {
    return interpreter.Text(std::string(Strip(self.string(), std::nullopt, kSide)));
  }
  const std::string set = TextArgument(interpreter, arguments, 0, "", "");
  if (!interpreter.Scan(self.string().size() * (set.size() + 1))) return {};
  return interpreter.Text(std::string(Strip(self.string(), set, kSide)));
}

template <bool kFromRight>
TemplateValue Split(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* separator = arguments.Get(0, "sep");
  const int64_t limit = IntegerArgument(interpreter, arguments, 1, "maxsplit", -1);
  if (separator == nullptr || separator->is_none()) {
    if (kFromRight && limit >= 0) {
      return interpreter.Fail("rsplit by white space takes no limit here");
    }
    return TextList(interpreter, SplitWhitespace(self.string(), limit));
  }
  const std::string by = TextArgument(interpreter, arguments, 0, "sep", "");
  if (interpreter.failed()) return {};
  if (by.empty()) return interpreter.Fail("empty separator");
  return TextList(interpreter, kFromRight ? SplitTextFromRight(self.string(), by, limit)
                                          : SplitText(self.string(), by, limit));
}

TemplateValue SplitLinesMethod(Interpreter& interpreter, Value self, Arguments arguments) {
  return TextList(interpreter,
                  SplitLines(self.string(), FlagArgument(arguments, 0, "keepends", false)));
}

template <bool kStart>
TemplateValue Affix(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* affix = arguments.Get(0, "");
  if (affix == nullptr) return interpreter.Fail("an affix is missing");
  const std::string& text = self.string();
  const auto matches = [&](Value part) {
    if (!part.is_string()) {
      interpreter.Fail(
          absl::StrFormat("first arg must be str or a tuple of str, not %s", part.TypeName()));
      return false;
    }
    const std::string& wanted = part.string();
    if (wanted.size() > text.size() || !interpreter.Scan(wanted.size())) return false;
    return text.compare(kStart ? 0 : text.size() - wanted.size(), wanted.size(), wanted) == 0;
  };
  if (affix->kind() == TemplateValue::Kind::kTuple) {
    const auto& parts = affix->items();
    return TemplateValue(std::any_of(parts.begin(), parts.end(), matches));
  }
  return TemplateValue(matches(*affix));
}

template <bool kPrefix>
TemplateValue RemoveAffix(Interpreter& interpreter, Value self, Arguments arguments) {
  const std::string affix = TextArgument(interpreter, arguments, 0, "", "");
  const std::string& text = self.string();
  if (affix.size() > text.size() || affix.empty()) return self;
  const size_t at = kPrefix ? 0 : text.size() - affix.size();
  if (text.compare(at, affix.size(), affix) != 0) return self;
  return interpreter.Text(kPrefix ? text.substr(affix.size()) : text.substr(0, at));
}

TemplateValue Replace(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* from = arguments.Get(0, "old");
  const TemplateValue* to = arguments.Get(1, "new");
  if (from == nullptr || to == nullptr) return interpreter.Fail("replace takes two strings");
  for (const TemplateValue* text : {from, to}) {
    if (!text->is_string()) {
      return interpreter.Fail(
          absl::StrFormat("replace() argument must be str, not %s", text->TypeName()));
    }
  }
  const TemplateValue* given = arguments.Get(2, "count");
  int64_t limit = given == nullptr || given->is_none()
                      ? -1
                      : IntegerArgument(interpreter, arguments, 2, "count", -1);
  if (limit < 0) limit = std::numeric_limits<int64_t>::max();
  const std::string_view text = self.string();
  const std::string& wanted = from->string();
  if (!interpreter.Scan(text.size())) return {};
  std::string result;
  size_t at = 0;
  for (; limit > 0; --limit) {
    // An empty pattern stands before every character and at the end.
    const size_t found = FindText(text, wanted, at);
    if (found == std::string_view::npos) break;
    result.append(text.substr(at, found - at)).append(to->string());
    at = found + wanted.size();
    if (result.size() > interpreter.bytes_left()) return interpreter.Text(std::move(result));
    if (!wanted.empty()) continue;
    if (at >= text.size()) break;
    size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    result.append(text.substr(at, next - at));
    at = next;
  }
  result.append(text.substr(std::min(at, text.size())));
  return interpreter.Text(std::move(result));
}

template <bool kLast, bool kMustExist>
TemplateValue Find(Interpreter& interpreter, Value self, Arguments arguments) {
  if (arguments.positional.size() != 1) {
    return interpreter.Fail("searching a string takes one string here");
  }
  const std::string wanted = TextArgument(interpreter, arguments, 0, "", "");
  const std::string& text = self.string();
  if (!interpreter.Scan(text.size())) return {};
  size_t found = FindText(text, wanted);
  if (kLast && found != std::string_view::npos) {
    if (wanted.empty()) found = text.size();
    // Each step searches only what lies behind the last match.
    for (size_t next = found; next != std::string_view::npos && !wanted.empty();) {
      found = next;
      if (!interpreter.Scan(wanted.size())) return {};
      next = FindText(text, wanted, found + 1);
    }
  }
  if (found != std::string_view::npos) {
    return TemplateValue(CountCharacters(std::string_view(text).substr(0, found)));
  }
  return kMustExist ? interpreter.Fail("substring not found") : TemplateValue(-1);
}

TemplateValue Count(Interpreter& interpreter, Value self, Arguments arguments) {
  const std::string wanted = TextArgument(interpreter, arguments, 0, "", "");
  if (!interpreter.Scan(self.string().size())) return {};
  if (wanted.empty()) return TemplateValue(CountCharacters(self.string()) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = FindText(self.string(), wanted, at)) != std::string_view::npos;
       at += wanted.size()) {
    ++count;
  }
  return TemplateValue(count);
}

TemplateValue JoinMethod(Interpreter& interpreter, Value self, Arguments arguments) {
  const TemplateValue* items = arguments.Get(0, "");
  if (items == nullptr) return interpreter.Fail("join() takes what to join");
  std::string joined;
  bool first = true;
  for (const TemplateValue& item : interpreter.Iterate(*items)) {
    if (!item.is_string()) {
      return interpreter.Fail(
          absl::StrFormat("sequence item: expected str instance, %s found", item.TypeName()));
    }
    if (!interpreter.Spend(item.string().size() + self.string().size())) return {};
    if (!std::exchange(first, false)) joined += self.string();
    joined += item.string();
  }
  return interpreter.Text(std::move(joined));
}

bool IsDigitCharacter(char32_t c) { return c >= '0' && c <= '9'; }
bool IsLetterCharacter(char32_t c) {
  return LowerCharacter(c) != c || UpperCharacter(c) != c ||
         (c >= 0x5D0 && !IsUnicodeSpace(c) && (c < 0x2000 || c > 0x303F));
}
bool IsLetterOrDigit(char32_t c) { return IsDigitCharacter(c) || IsLetterCharacter(c); }

template <bool (*kTest)(char32_t)>
TemplateValue AllOf(Interpreter&, Value self, Arguments) {
  const std::string& text = self.string();
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = DecodeUtf8(text, at);
    if (!kTest(c.code_point)) return TemplateValue(false);
    at += c.length;
  }
  return TemplateValue(!text.empty());
}

TemplateValue IsUpperMethod(Interpreter&, Value self, Arguments) {
  const std::string& text = self.string();
  return TemplateValue(UpperText(text) == text && LowerText(text) != text);
}

TemplateValue IsLowerMethod(Interpreter&, Value self, Arguments) {
  const std::string& text = self.string();
  return TemplateValue(LowerText(text) == text && UpperText(text) != text);
}

template <bool kLeft>
TemplateValue Justify(Interpreter& interpreter, Value self, Arguments arguments) {
  const std::string& text = self.string();
  const int64_t width = IntegerArgument(interpreter, arguments, 0, "", 0);
  const std::string fill = TextArgument(interpreter, arguments, 1, "", " ");
  const int64_t missing = width - CountCharacters(text);
  if (missing <= 0) return self;
  if (fill.size() != 1) return interpreter.Fail("the fill character must be one ASCII character");
  if (!interpreter.Spend(static_cast<size_t>(missing))) return {};
  const std::string space(static_cast<size_t>(missing), fill[0]);
  return interpreter.Text(kLeft ? text + space : space + text);
}

template <bool kLast>
TemplateValue Partition(Interpreter& interpreter, Value self, Arguments arguments) {
  const std::string by = TextArgument(interpreter, arguments, 0, "", "");
  if (by.empty()) return interpreter.Fail("empty separator");
  const auto parts =
      kLast ? SplitTextFromRight(self.string(), by, 1) : SplitText(self.string(), by, 1);
  TemplateValue::List three;
  if (parts.size() == 2) {
    three = {TemplateValue(parts[0]), TemplateValue(by), TemplateValue(parts[1])};
  } else if (kLast) {
    three = {TemplateValue(""), TemplateValue(""), self};
  } else {
    three = {self, TemplateValue(""), TemplateValue("")};
  }
  interpreter.Spend(self.string().size());
  return interpreter.Sequence(TemplateValue::Kind::kTuple, std::move(three));
}

}  // namespace

std::span<const Builtin> TextMethods() {
  static constexpr Builtin kMethods[] = {
      {"capitalize", MapMethod<CapitalizeText>},
      {"casefold", MapMethod<LowerText>},
      {"count", Count},
      {"endswith", Affix<false>},
      {"find", Find<false, false>},
      {"index", Find<false, true>},
      {"isalnum", AllOf<IsLetterOrDigit>},
      {"isalpha", AllOf<IsLetterCharacter>},
      {"isdecimal", AllOf<IsDigitCharacter>},
      {"isdigit", AllOf<IsDigitCharacter>},
      {"islower", IsLowerMethod},
      {"isnumeric", AllOf<IsDigitCharacter>},
      {"isspace", AllOf<IsUnicodeSpace>},
      {"isupper", IsUpperMethod},
      {"join", JoinMethod},
      {"ljust", Justify<true>},
      {"lower", MapMethod<LowerText>},
      {"lstrip", StripMethod<StripSide::kLeft>},
      {"partition", Partition<false>},
      {"removeprefix", RemoveAffix<true>},
      {"removesuffix", RemoveAffix<false>},
      {"replace", Replace},
      {"rfind", Find<true, false>},
      {"rindex", Find<true, true>},
      {"rjust", Justify<false>},
      {"rpartition", Partition<true>},
      {"rsplit", Split<true>},
      {"rstrip", StripMethod<StripSide::kRight>},
      {"split", Split<false>},
      {"splitlines", SplitLinesMethod},
      {"startswith", Affix<true>},
      {"strip", StripMethod<StripSide::kBoth>},
      {"title", MapMethod<TitleText>},
      {"upper", MapMethod<UpperText>},
  };
  return kMethods;
}

}  // namespace hexad
