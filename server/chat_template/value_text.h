#pragma once

// Values as text: Python's str and repr, and JSON. Sharing makes some values exponentially larger
// as text than in memory, so each stops, with false, once `out` exceeds `max_bytes`.

#include <cstddef>
#include <string>
#include <string_view>

#include "server/chat_template/value.h"

namespace hexad {

// str(value): what {{ value }} prints.
bool AppendText(const TemplateValue& value, size_t max_bytes, std::string& out);
// repr(value): how a value looks inside a printed list.
bool AppendRepresentation(const TemplateValue& value, size_t max_bytes, std::string& out);

struct JsonStyle {
  int indent = -1;          // spaces a level; -1: all on one line
  std::string indent_text;  // instead of spaces, when not empty
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};
// json.dumps. False also for what JSON has no form of; `error` then says what.
bool AppendJson(const TemplateValue& value, const JsonStyle& style, size_t max_bytes,
                std::string& out, std::string& error);

// The shortest decimal that reads back the same, spelled as Python does: 1.0, 1e-05, inf.
std::string FloatText(double value);

}  // namespace hexad
