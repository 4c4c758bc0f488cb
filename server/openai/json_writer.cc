#include "server/openai/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/tokenizer/utf8.h"

namespace hexad {
namespace {

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
    const size_t size = escape ? 0 : ValidUtf8Length(text, i);
    if (size > 0) {
      i += size;
      continue;
    }
    out_->append(text.substr(plain, i - plain));
    if (escape) {
      AppendEscaped(byte, out_);
    } else {
      out_->append(kReplacementCharacter);
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
