#include "engine/tokenizer/utf8.h"

#include <algorithm>

namespace hexad {
namespace {

// What may follow a lead byte: how many continuation bytes, and the range of the first of them
// (Unicode table 3-7). Zero continuations for ASCII; negative for what leads nothing.
struct Lead {
  int continuations;
  uint8_t low;
  uint8_t high;
};

Lead ClassifyLead(uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xC2) return {-1, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {2, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte < 0xF5) {
    return {3, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {-1, 0, 0};
}

}  // namespace

Utf8Char DecodeUtf8(std::string_view text, size_t position) {
  const auto lead_byte = static_cast<uint8_t>(text[position]);
  const Lead lead = ClassifyLead(lead_byte);
  if (lead.continuations < 0) return {Utf8Kind::kInvalid, 1, 0};
  if (lead.continuations == 0) return {Utf8Kind::kValid, 1, lead_byte};
  char32_t code_point = lead_byte & (0x3F >> lead.continuations);
  for (int i = 1; i <= lead.continuations; ++i) {
    const auto seen = static_cast<uint8_t>(i);
    if (position + i >= text.size()) return {Utf8Kind::kIncomplete, seen, 0};
    const auto byte = static_cast<uint8_t>(text[position + i]);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {Utf8Kind::kInvalid, seen, 0};
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  return {Utf8Kind::kValid, static_cast<uint8_t>(lead.continuations + 1), code_point};
}

size_t ValidUtf8Length(std::string_view text, size_t position) {
  const Utf8Char c = DecodeUtf8(text, position);
  return c.kind == Utf8Kind::kValid ? c.length : 0;
}

void AppendUtf8(char32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    out.append(kReplacementCharacter);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  }
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (static_cast<uint8_t>(text[position]) < 0x80) {
      ++position;
      continue;
    }
    const Utf8Char c = DecodeUtf8(text, position);
    if (c.kind != Utf8Kind::kValid) return position;
    position += c.length;
  }
  return position;
}

std::string TakeWholeCharacters(std::string& pending) {
  std::string whole;
  size_t position = 0;
  while (position < pending.size()) {
    const Utf8Char c = DecodeUtf8(pending, position);
    if (c.kind == Utf8Kind::kIncomplete) break;
    if (c.kind == Utf8Kind::kValid) {
      whole.append(pending, position, c.length);
    } else {
      whole.append(kReplacementCharacter);
    }
    position += c.length;
  }
  pending.erase(0, position);
  return whole;
}

int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace hexad
