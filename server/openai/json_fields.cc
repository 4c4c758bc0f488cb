#include "server/openai/json_fields.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/openai/json_check.h"
#include "server/status.h"

namespace hexad {
namespace {

std::string_view TypeName(JsonValue value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY:
      return "an array";
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64:
      return "an integer";
    case simdjson::dom::element_type::DOUBLE:
      return "a decimal";
    case simdjson::dom::element_type::STRING:
      return "a string";
    case simdjson::dom::element_type::BOOL:
      return "a boolean";
    case simdjson::dom::element_type::NULL_VALUE:
      return "null";
  }
  return "something else";
}

absl::Status SyntaxError(std::string_view text, simdjson::error_code code) {
  const auto error = FindJsonError(text, kMaxJsonDepth);
  if (!error.has_value()) {
    // Only numbers out of range and the like are left.
    return absl::InvalidArgumentError(
        absl::StrFormat("The request body is not usable JSON: %s", simdjson::error_message(code)));
  }
  size_t line = 1, column = 1;
  for (size_t i = 0; i < error->offset; ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    if (text[i] == '\n') ++line;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("The request body is not valid JSON: %s, at byte %d (line %d, column %d).",
                      error->what, error->offset, line, column));
}

}  // namespace

absl::StatusOr<JsonDocument> JsonDocument::Parse(std::string text) {
  JsonDocument document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::error_code error = document.parser_->allocate(std::max<size_t>(text.size(), 64),
                                                          static_cast<size_t>(kMaxJsonDepth));
  if (error != simdjson::SUCCESS) {
    return absl::UnavailableError("There is no memory for a request this large now.");
  }
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);  // the parser reads past the end
  error = document.parser_->parse(text.data(), text.size(), /*realloc_if_needed=*/false)
              .get(document.root_);
  if (error != simdjson::SUCCESS) return SyntaxError(text, error);
  return document;  // the values live in the parser; the text may go
}

absl::Status FieldError(std::string_view param, std::string_view what) {
  return WithParam(absl::InvalidArgumentError(absl::StrFormat("Invalid '%s': %s.", param, what)),
                   param);
}

absl::Status TypeError(std::string_view param, std::string_view wanted, JsonValue got) {
  return WithParam(
      absl::InvalidArgumentError(absl::StrFormat(
          "Invalid type for '%s': expected %s, but got %s instead.", param, wanted, TypeName(got))),
      param, "invalid_type");
}

absl::StatusOr<double> ReadNumber(JsonValue value, std::string_view param, double min, double max) {
  double number = 0;
  if (value.get(number) != simdjson::SUCCESS) return TypeError(param, "a number", value);
  if (!(number >= min && number <= max)) {
    return FieldError(param,
                      absl::StrFormat("it must be from %g to %g, but is %g", min, max, number));
  }
  return number;
}

absl::StatusOr<int64_t> ReadInteger(JsonValue value, std::string_view param, int64_t min,
                                    int64_t max) {
  int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS) {
    double decimal = 0;
    if (value.get(decimal) != simdjson::SUCCESS || decimal != std::floor(decimal)) {
      return TypeError(param, "an integer", value);
    }
    // Beyond 2^53 a double names no integer; the cast below must not overflow.
    if (std::abs(decimal) > 9007199254740992.0) {
      return FieldError(param, absl::StrFormat("it must be from %d to %d", min, max));
    }
    number = static_cast<int64_t>(decimal);
  }
  if (number < min || number > max) {
    return FieldError(param,
                      absl::StrFormat("it must be from %d to %d, but is %d", min, max, number));
  }
  return number;
}

absl::StatusOr<bool> ReadBool(JsonValue value, std::string_view param) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) return TypeError(param, "a boolean", value);
  return flag;
}

absl::StatusOr<std::string_view> ReadString(JsonValue value, std::string_view param,
                                            size_t max_bytes) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return TypeError(param, "a string", value);
  if (text.size() > max_bytes) {
    return FieldError(param, absl::StrFormat("it is longer than %d bytes", max_bytes));
  }
  return text;
}

absl::StatusOr<JsonArray> ReadArray(JsonValue value, std::string_view param) {
  JsonArray array;
  if (value.get(array) != simdjson::SUCCESS) return TypeError(param, "an array", value);
  return array;
}

absl::StatusOr<JsonObject> ReadObject(JsonValue value, std::string_view param) {
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS) return TypeError(param, "an object", value);
  return object;
}

}  // namespace hexad
