#include "server/chat_template/text_ops.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/tokenizer/utf8.h"

namespace hexad {
namespace {

template <typename Map>
std::string MapText(std::string_view text, const Map& map) {
  std::string mapped;
  mapped.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = DecodeUtf8(text, at);
    if (c.kind == Utf8Kind::kValid) {
      AppendUtf8(map(c.code_point), mapped);
    } else {
      mapped.append(text.substr(at, c.length));
    }
    at += c.length;
  }
  return mapped;
}

// The start of the character that ends before `end`.
size_t PreviousCharacter(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool InSet(std::string_view text, size_t at, std::optional<std::string_view> characters) {
  const Utf8Char c = DecodeUtf8(text, at);
  if (!characters) return c.kind == Utf8Kind::kValid && IsUnicodeSpace(c.code_point);
  const std::string_view one = text.substr(at, c.length);
  for (size_t i = 0; i < characters->size(); i += DecodeUtf8(*characters, i).length) {
    if (characters->substr(i, DecodeUtf8(*characters, i).length) == one) return true;
  }
  return false;
}

bool IsLetterWithCase(char32_t c) { return LowerCharacter(c) != c || UpperCharacter(c) != c; }

}  // namespace

std::vector<std::string_view> SplitCharacters(std::string_view text) {
  std::vector<std::string_view> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = DecodeUtf8(text, at).length;
    characters.push_back(text.substr(at, length));
    at += length;
  }
  return characters;
}

size_t FindText(std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  // glibc's memmem is the two-way algorithm; string::find is quadratic at worst.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool IsUnicodeSpace(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view Strip(std::string_view text, std::optional<std::string_view> characters,
                       StripSide side) {
  size_t begin = 0;
  size_t end = text.size();
  if (side != StripSide::kRight) {
    while (begin < end && InSet(text, begin, characters)) begin += DecodeUtf8(text, begin).length;
  }
  if (side != StripSide::kLeft) {
    while (end > begin) {
      const size_t last = PreviousCharacter(text.substr(0, end), end);
      if (last < begin || !InSet(text.substr(0, end), last, characters)) break;
      end = last;
    }
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> SplitText(std::string_view text, std::string_view separator,
                                        int64_t limit) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t found = FindText(text, separator, begin);
    if (found == std::string_view::npos) break;
    parts.push_back(text.substr(begin, found - begin));
    begin = found + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> SplitTextFromRight(std::string_view text, std::string_view separator,
                                                 int64_t limit) {
  if (limit < 0) return SplitText(text, separator, limit);
  std::vector<std::string_view> parts = SplitText(text, separator, -1);
  const auto wanted = static_cast<size_t>(limit) + 1;
  if (parts.size() <= wanted) return parts;
  const size_t joined = parts.size() - wanted;  // parts 0..joined stay together
  const std::string_view last = parts[joined];
  const auto head = static_cast<size_t>(last.data() + last.size() - text.data());
  std::vector<std::string_view> result = {text.substr(0, head)};
  result.insert(result.end(), parts.begin() + static_cast<std::ptrdiff_t>(joined) + 1, parts.end());
  return result;
}

std::vector<std::string_view> SplitWhitespace(std::string_view text, int64_t limit) {
  std::vector<std::string_view> parts;
  text = Strip(text, std::nullopt, StripSide::kLeft);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(Strip(text, std::nullopt, StripSide::kRight));
      break;
    }
    size_t end = 0;
    while (end < text.size() && !InSet(text, end, std::nullopt)) {
      end += DecodeUtf8(text, end).length;
    }
    parts.push_back(text.substr(0, end));
    text = Strip(text.substr(end), std::nullopt, StripSide::kLeft);
  }
  return parts;
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find_first_of("\r\n\v\f", begin);
    size_t next = text.size();
    if (end == std::string_view::npos) {
      end = text.size();
    } else {
      next = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
    }
    lines.push_back(text.substr(begin, (keep_ends ? next : end) - begin));
    begin = next;
  }
  return lines;
}

char32_t LowerCharacter(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
  const bool even_is_upper = (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) ||
                             (c >= 0x14A && c <= 0x177) || (c >= 0x1E00 && c <= 0x1E95) ||
                             (c >= 0x1EA0 && c <= 0x1EFF) || (c >= 0x460 && c <= 0x481) ||
                             (c >= 0x48A && c <= 0x4BF) || (c >= 0x4D0 && c <= 0x52F);
  if (even_is_upper) return c | 1;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) return c % 2 == 1 ? c + 1 : c;
  if (c == 0x178) return 0xFF;
  if (c >= 0x391 && c <= 0x3AB && c != 0x3A2) return c + 32;
  if (c == 0x386) return 0x3AC;
  if (c >= 0x388 && c <= 0x38A) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (c == 0x38E || c == 0x38F) return c + 63;
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  if (c >= 0x410 && c <= 0x42F) return c + 32;
  if (c >= 0x531 && c <= 0x556) return c + 48;
  return c;
}

char32_t UpperCharacter(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (c == 0xFF) return 0x178;
  if (c == 0xB5) return 0x39C;
  if (c == 0x3C2) return 0x3A3;
  // The lower-case letters are those that some upper-case letter maps to.
  static constexpr int32_t kDistances[] = {-32, -1, -80, -37, -63, -48, -38};
  for (int32_t distance : kDistances) {
    const auto candidate = static_cast<char32_t>(static_cast<int32_t>(c) + distance);
    if (candidate >= 0x80 && LowerCharacter(candidate) == c) return candidate;
  }
  return c;
}

std::string LowerText(std::string_view text) { return MapText(text, LowerCharacter); }

std::string UpperText(std::string_view text) {
  std::string upper;
  upper.reserve(text.size());
  for (std::string_view c : SplitCharacters(text)) {
    // The one letter of Latin-1 whose upper case is two letters.
    upper += c == "ß" ? std::string("SS") : MapText(c, UpperCharacter);
  }
  return upper;
}

std::string CapitalizeText(std::string_view text) {
  bool first = true;
  return MapText(text, [&first](char32_t c) {
    return std::exchange(first, false) ? UpperCharacter(c) : LowerCharacter(c);
  });
}

std::string TitleText(std::string_view text) {
  bool inside = false;
  return MapText(text, [&inside](char32_t c) {
    const bool letter = IsLetterWithCase(c);
    const char32_t mapped = inside ? LowerCharacter(c) : UpperCharacter(c);
    inside = letter;
    return mapped;
  });
}

}  // namespace hexad
