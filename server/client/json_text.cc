#include "server/client/json_text.h"

#include "engine/tokenizer/utf8.h"

namespace hexad {

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    size_t length = ValidUtf8Length(text, 0);
    if (length == 0) {
      out += kReplacementCharacter;
      length = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20) {
      out += "\\u00";
      out += "0123456789abcdef"[c >> 4];
      out += "0123456789abcdef"[c & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const size_t length = ValidUtf8Length(text, 0);
    const bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    const bool c1 = c == 0xC2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (length != 0 && !control && !c1) out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace hexad
