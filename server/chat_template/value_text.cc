#include "server/chat_template/value_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "engine/tokenizer/utf8.h"

namespace hexad {
namespace {

using Kind = TemplateValue::Kind;

void AppendQuoted(std::string_view text, std::string& out) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.push_back(quote);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = DecodeUtf8(text, at);
    const char32_t point = c.code_point;
    if (point == static_cast<char32_t>(quote) || point == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(point));
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\r') {
      out += "\\r";
    } else if (point == '\t') {
      out += "\\t";
    } else if (c.kind != Utf8Kind::kValid || point < 0x20 || (point >= 0x7F && point <= 0xA0) ||
               point == 0xAD) {
      out +=
          absl::StrFormat("\\x%02x", c.kind == Utf8Kind::kValid ? static_cast<uint32_t>(point)
                                                                : static_cast<uint8_t>(text[at]));
    } else {
      out.append(text.substr(at, c.length));
    }
    at += c.length;
  }
  out.push_back(quote);
}

bool AppendItems(const TemplateValue::List& items, size_t max_bytes, std::string& out) {
  bool first = true;
  for (const TemplateValue& item : items) {
    if (!std::exchange(first, false)) out += ", ";
    if (!AppendRepresentation(item, max_bytes, out)) return false;
  }
  return true;
}

void AppendJsonString(std::string_view text, bool ensure_ascii, std::string& out) {
  out.push_back('"');
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = DecodeUtf8(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(text[at]);
    } else if (byte < 0x20) {
      static constexpr std::string_view kShort = "\b\t\n\f\r";
      const size_t known = kShort.find(text[at]);
      out += known != std::string_view::npos
                 ? std::string("\\") + "btnfr"[known]
                 : absl::StrFormat("\\u%04x", static_cast<uint32_t>(byte));
    } else if (ensure_ascii && c.code_point >= 0x10000) {
      const char32_t rest = c.code_point - 0x10000;
      out += absl::StrFormat("\\u%04x\\u%04x", static_cast<uint32_t>(0xD800 + (rest >> 10)),
                             static_cast<uint32_t>(0xDC00 + (rest & 0x3FF)));
    } else if (ensure_ascii && c.code_point >= 0x7F) {
      out += absl::StrFormat("\\u%04x", static_cast<uint32_t>(c.code_point));
    } else {
      out.append(text.substr(at, c.length));
    }
    at += c.length;
  }
  out.push_back('"');
}

class JsonWriter final {
 public:
  JsonWriter(const JsonStyle& style, size_t max_bytes, std::string& out, std::string& error)
      : style_(style), max_bytes_(max_bytes), out_(out), error_(error) {}

  bool Write(const TemplateValue& value, int level) {
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        break;
      case Kind::kBool:
        out_ += value.boolean() ? "true" : "false";
        break;
      case Kind::kInt:
        out_ += std::to_string(value.integer());
        break;
      case Kind::kFloat:
        AppendNumber(value.number());
        break;
      case Kind::kString:
        AppendJsonString(value.string(), style_.ensure_ascii, out_);
        break;
      case Kind::kList:
      case Kind::kTuple:
        return WriteList(value.items(), level);
      case Kind::kDict:
        return WriteDict(value.dict(), level);
      case Kind::kUndefined:
      case Kind::kGenerator:
      case Kind::kObject:
        error_ = absl::StrFormat("Object of type %s is not JSON serializable", value.TypeName());
        return false;
    }
    return out_.size() <= max_bytes_;
  }

 private:
  void AppendNumber(double number) {
    if (std::isnan(number)) {
      out_ += "NaN";
    } else if (std::isinf(number)) {
      out_ += number > 0 ? "Infinity" : "-Infinity";
    } else {
      out_ += FloatText(number);
    }
  }

  void Break(int level) {
    if (style_.indent < 0 && style_.indent_text.empty()) return;
    out_.push_back('\n');
    for (int i = 0; i < level; ++i) {
      if (style_.indent_text.empty()) {
        out_.append(static_cast<size_t>(style_.indent), ' ');
      } else {
        out_ += style_.indent_text;
      }
    }
  }

  bool WriteList(const TemplateValue::List& items, int level) {
    out_.push_back('[');
    bool first = true;
    for (const TemplateValue& item : items) {
      if (!std::exchange(first, false)) out_ += style_.item_separator;
      Break(level + 1);
      if (!Write(item, level + 1)) return false;
    }
    if (!items.empty()) Break(level);
    out_.push_back(']');
    return out_.size() <= max_bytes_;
  }

  bool WriteDict(const TemplateDict& dict, int level) {
    std::vector<const TemplateDict::Entry*> entries;
    for (const TemplateDict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
        return a->first.is_string() && b->first.is_string() &&
               a->first.string() < b->first.string();
      });
    }
    out_.push_back('{');
    bool first = true;
    for (const TemplateDict::Entry* entry : entries) {
      if (!std::exchange(first, false)) out_ += style_.item_separator;
      Break(level + 1);
      if (!WriteKey(entry->first)) return false;
      out_ += style_.key_separator;
      if (!Write(entry->second, level + 1)) return false;
    }
    if (!entries.empty()) Break(level);
    out_.push_back('}');
    return out_.size() <= max_bytes_;
  }

  bool WriteKey(const TemplateValue& key) {
    if (key.is_string()) {
      AppendJsonString(key.string(), style_.ensure_ascii, out_);
      return true;
    }
    if (!key.is_number() && !key.is_none()) {
      error_ =
          absl::StrFormat("keys must be str, int, float, bool or None, not %s", key.TypeName());
      return false;
    }
    out_.push_back('"');
    const bool written = Write(key, 0);
    out_.push_back('"');
    return written;
  }

  const JsonStyle& style_;
  const size_t max_bytes_;
  std::string& out_;
  std::string& error_;
};

}  // namespace

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t mark = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(mark + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(text);
  char fixed[64];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed);
  std::string result(fixed, static_cast<size_t>(fixed_end.ptr - fixed));
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

bool AppendText(const TemplateValue& value, size_t max_bytes, std::string& out) {
  if (value.is_string()) {
    out += value.string();
  } else if (!value.is_undefined()) {
    return AppendRepresentation(value, max_bytes, out);
  }
  return out.size() <= max_bytes;
}

bool AppendRepresentation(const TemplateValue& value, size_t max_bytes, std::string& out) {
  switch (value.kind()) {
    case Kind::kUndefined:
      out += "Undefined";
      break;
    case Kind::kNone:
      out += "None";
      break;
    case Kind::kBool:
      out += value.boolean() ? "True" : "False";
      break;
    case Kind::kInt:
      out += std::to_string(value.integer());
      break;
    case Kind::kFloat:
      out += FloatText(value.number());
      break;
    case Kind::kString:
      AppendQuoted(value.string(), out);
      break;
    case Kind::kList:
    case Kind::kTuple: {
      const bool list = value.kind() == Kind::kList;
      out.push_back(list ? '[' : '(');
      if (!AppendItems(value.items(), max_bytes, out)) return false;
      if (!list && value.items().size() == 1) out.push_back(',');
      out.push_back(list ? ']' : ')');
      break;
    }
    case Kind::kGenerator:
      out += "<generator object>";
      break;
    case Kind::kDict: {
      out.push_back('{');
      bool first = true;
      for (const auto& [key, item] : value.dict().entries()) {
        if (!std::exchange(first, false)) out += ", ";
        if (!AppendRepresentation(key, max_bytes, out)) return false;
        out += ": ";
        if (!AppendRepresentation(item, max_bytes, out)) return false;
      }
      out.push_back('}');
      break;
    }
    case Kind::kObject:
      out += value.object().Describe();
      break;
  }
  return out.size() <= max_bytes;
}

bool AppendJson(const TemplateValue& value, const JsonStyle& style, size_t max_bytes,
                std::string& out, std::string& error) {
  return JsonWriter(style, max_bytes, out, error).Write(value, 0);
}

}  // namespace hexad
