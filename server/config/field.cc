#include "server/config/field.h"

#include <algorithm>

#include "server/config/values.h"

namespace hexad {
namespace {

Field Scalar(std::string name, std::string doc, std::string type, std::string schema) {
  Field field;
  field.name = std::move(name);
  field.doc = std::move(doc);
  field.type = std::move(type);
  field.schema = std::move(schema);
  return field;
}

std::string Range(const std::string& min, const std::string& max) { return min + " to " + max; }

std::string IntegerSchema(int64_t min, int64_t max) {
  return "\"type\":\"integer\",\"minimum\":" + std::to_string(min) +
         ",\"maximum\":" + std::to_string(max);
}

constexpr char kBytesSchema[] =
    R"("type":["string","integer"],"pattern":"^[0-9.]+ ?([KMGT]i?B|B)?$")";
constexpr char kDurationSchema[] = R"("type":"string","pattern":"^([0-9.]+(h|m|s|ms|us|ns))+$")";
constexpr char kAddressSchema[] =
    R"("type":"string","pattern":"^(\\[[0-9a-fA-F:.]+\\]|[^:]+):[0-9]+$")";
constexpr char kTextSchema[] = R"("type":"string","minLength":1,"maxLength":4096)";

// The schema of a field that also takes `word`.
std::string OrWord(const std::string& schema, const std::string& word) {
  return "\"anyOf\":[{" + schema + "},{\"const\":\"" + word + "\"}]";
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
}

// Wraps a field of T into one of optional<T>: `word` stands for nullopt.
template <typename T>
Field Optional(Field field, std::optional<T>* value, std::string word, std::shared_ptr<T> scratch) {
  field.type = word + " or " + field.type;
  field.schema = OrWord(field.schema, word);
  field.parse = [value, word, scratch, inner = std::move(field.parse)](const std::string& text) {
    if (text == word) {
      value->reset();
      return std::string();
    }
    std::string problem = inner(text);
    if (problem.empty()) {
      *value = *scratch;
    } else {
      problem += ", or " + word;
    }
    return problem;
  };
  field.print = [value, word, scratch, inner = std::move(field.print)] {
    if (!value->has_value()) return word;
    *scratch = **value;
    return inner();
  };
  return field;
}

}  // namespace

Field& Field::Reloadable() & {
  reloadable = true;
  for (Field& child : children) child.Reloadable();
  return *this;
}
Field Field::Reloadable() && { return std::move(Reloadable()); }
Field Field::Required() && {
  required = true;
  return std::move(*this);
}

Field Section(std::string name, std::string doc, std::vector<Field> children) {
  Field field = Scalar(std::move(name), std::move(doc), "", "");
  field.kind = Field::Kind::kSection;
  field.children = std::move(children);
  return field;
}

Field Unsupported(std::string name) {
  Field field = Scalar(std::move(name), "", "", "");
  field.kind = Field::Kind::kUnsupported;
  return field;
}

Field IntegerField(std::string name, std::string doc, int64_t* value, int64_t min, int64_t max) {
  const std::string range = Range(std::to_string(min), std::to_string(max));
  Field field =
      Scalar(std::move(name), std::move(doc), "integer, " + range, IntegerSchema(min, max));
  field.parse = [=](const std::string& text) -> std::string {
    const std::optional<int64_t> parsed = ParseInteger(text);
    if (!parsed.has_value() || *parsed < min || *parsed > max) {
      return "must be an integer from " + range;
    }
    *value = *parsed;
    return "";
  };
  field.print = [value] { return std::to_string(*value); };
  return field;
}

Field BytesField(std::string name, std::string doc, int64_t* value, int64_t min, int64_t max) {
  const std::string range = Range(FormatBytes(min), FormatBytes(max));
  Field field = Scalar(std::move(name), std::move(doc), "bytes, " + range, kBytesSchema);
  field.parse = [=](const std::string& text) -> std::string {
    const std::optional<int64_t> parsed = ParseBytes(text);
    if (!parsed.has_value()) return "must be a number of bytes such as 64KiB, 16MiB or 4GiB";
    if (*parsed < min || *parsed > max) return "must be from " + range;
    *value = *parsed;
    return "";
  };
  field.print = [value] { return FormatBytes(*value); };
  return field;
}

Field DurationField(std::string name, std::string doc, absl::Duration* value, absl::Duration min,
                    absl::Duration max) {
  const std::string range = Range(FormatTimeSpan(min), FormatTimeSpan(max));
  Field field = Scalar(std::move(name), std::move(doc), "duration, " + range, kDurationSchema);
  field.parse = [=](const std::string& text) -> std::string {
    const std::optional<absl::Duration> parsed = ParseTimeSpan(text);
    if (!parsed.has_value()) return "must be a time with its unit, such as 100ms, 30s or 1h30m";
    if (*parsed < min || *parsed > max) return "must be from " + range;
    *value = *parsed;
    return "";
  };
  field.print = [value] { return FormatTimeSpan(*value); };
  return field;
}

Field AddressField(std::string name, std::string doc, ListenAddress* value) {
  Field field = Scalar(std::move(name), std::move(doc), "address", kAddressSchema);
  field.parse = [value](const std::string& text) -> std::string {
    std::optional<ListenAddress> parsed = ParseListenAddress(text);
    if (!parsed.has_value()) {
      return "must be an IP address and a port, such as 127.0.0.1:8000 or [::1]:8000";
    }
    *value = *std::move(parsed);
    return "";
  };
  field.print = [value] { return value->ToString(); };
  return field;
}

Field TextField(std::string name, std::string doc, std::string* value) {
  Field field = Scalar(std::move(name), std::move(doc), "text", kTextSchema);
  field.parse = [value](const std::string& text) -> std::string {
    if (text.empty() || text.size() > 4096 || !IsPrintable(text)) {
      return "must be 1 to 4096 bytes of text without control characters";
    }
    *value = text;
    return "";
  };
  field.print = [value] { return *value; };
  return field;
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '/' || c == '-';
  });
}

Field NameField(std::string name, std::string doc, std::string* value) {
  Field field = Scalar(std::move(name), std::move(doc), "name",
                       R"("type":"string","pattern":"^[A-Za-z0-9._/-]{1,128}$")");
  field.parse = [value](const std::string& text) -> std::string {
    if (!IsName(text)) return "must be 1 to 128 letters, digits and ._/-";
    *value = text;
    return "";
  };
  field.print = [value] { return *value; };
  return field;
}

Field OptionalInteger(std::string name, std::string doc, std::optional<int64_t>* value,
                      std::string word, int64_t min, int64_t max) {
  auto scratch = std::make_shared<int64_t>(0);
  Field inner = IntegerField(std::move(name), std::move(doc), scratch.get(), min, max);
  return Optional(std::move(inner), value, std::move(word), std::move(scratch));
}

Field OptionalBytes(std::string name, std::string doc, std::optional<int64_t>* value,
                    std::string word, int64_t min, int64_t max) {
  auto scratch = std::make_shared<int64_t>(0);
  Field inner = BytesField(std::move(name), std::move(doc), scratch.get(), min, max);
  return Optional(std::move(inner), value, std::move(word), std::move(scratch));
}

Field OptionalAddress(std::string name, std::string doc, std::optional<ListenAddress>* value,
                      std::string word) {
  auto scratch = std::make_shared<ListenAddress>();
  Field inner = AddressField(std::move(name), std::move(doc), scratch.get());
  return Optional(std::move(inner), value, std::move(word), std::move(scratch));
}

Field ChoiceField(std::string name, std::string doc, std::vector<std::string> words,
                  std::function<size_t()> get, std::function<void(size_t)> set) {
  std::string list;
  std::string schema = "\"enum\":[";
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      list += i + 1 == words.size() ? " or " : ", ";
      schema += ",";
    }
    list += words[i];
    schema += "\"" + words[i] + "\"";
  }
  Field field = Scalar(std::move(name), std::move(doc), list, schema + "]");
  field.print = [words, get = std::move(get)] { return words[get()]; };
  field.parse = [words, list, set = std::move(set)](const std::string& text) -> std::string {
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) {
      const std::optional<std::string> nearest = NearestName(text, words);
      return "must be " + list +
             (nearest.has_value() ? "; did you mean " + *nearest + "?" : std::string());
    }
    set(static_cast<size_t>(found - words.begin()));
    return "";
  };
  return field;
}

}  // namespace hexad
