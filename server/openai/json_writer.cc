#include "server/openai/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hexad {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr float kLargestFloat = 9999.0f;

void AppendEscaped(unsigned char byte, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    default:
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
  }
}

}  // namespace

// Table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
size_t Utf8SequenceSize(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t size = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    size = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    size = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    size = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  if (size == 0 || at + size > text.size() || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return size;
}

void JsonWriter::BeforeValue() {
  if (needs_comma_) out_->push_back(',');
  needs_comma_ = true;
}

JsonWriter& JsonWriter::Open(char bracket) {
  BeforeValue();
  out_->push_back(bracket);
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  out_->push_back(bracket);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  String(name);
  out_->push_back(':');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  out_->push_back('"');
  size_t plain = 0;  // start of what needs no change
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool escape = byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F;
    const size_t size = escape ? 0 : Utf8SequenceSize(text, i);
    if (size > 0) {
      i += size;
      continue;
    }
    out_->append(text.substr(plain, i - plain));
    if (escape) {
      AppendEscaped(byte, out_);
    } else {
      out_->append(kReplacement);
    }
    plain = ++i;
  }
  out_->append(text.substr(plain));
  out_->push_back('"');
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  BeforeValue();
  out_->append(std::to_string(value));
  return *this;
}

JsonWriter& JsonWriter::Float(float value) {
  BeforeValue();
  if (std::isnan(value)) value = 0;
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer),
                                 std::clamp(value, -kLargestFloat, kLargestFloat));
  out_->append(buffer, end.ptr);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) { return Raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::Null() { return Raw("null"); }

JsonWriter& JsonWriter::Bytes(std::string_view bytes) {
  BeginArray();
  for (const char byte : bytes) Int(static_cast<unsigned char>(byte));
  return EndArray();
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  BeforeValue();
  out_->append(json);
  return *this;
}

}  // namespace hexad
