#pragma once

// Reading typed fields out of a parsed JSON body, with errors that name the field as OpenAI does.
// Internal to server/openai; includes simdjson.

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hexad {

using JsonValue = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;

inline constexpr int kMaxJsonDepth = 128;

// Owns what its values point into.
class JsonDocument final {
 public:
  // Malformed text is InvalidArgument with the position.
  static absl::StatusOr<JsonDocument> Parse(std::string text);
  JsonValue root() const { return root_; }

 private:
  JsonDocument() = default;

  std::unique_ptr<simdjson::dom::parser> parser_;
  JsonValue root_;
};

// "Invalid 'top_p': <what>." as InvalidArgument with the param.
absl::Status FieldError(std::string_view param, std::string_view what);
// "Invalid type for 'top_p': expected <wanted>, but got a string instead."
absl::Status TypeError(std::string_view param, std::string_view wanted, JsonValue got);

absl::StatusOr<double> ReadNumber(JsonValue value, std::string_view param, double min, double max);
// Numbers like 16.0 count as integers: some clients write all numbers so.
absl::StatusOr<int64_t> ReadInteger(JsonValue value, std::string_view param, int64_t min,
                                    int64_t max);
absl::StatusOr<bool> ReadBool(JsonValue value, std::string_view param);
absl::StatusOr<std::string_view> ReadString(JsonValue value, std::string_view param,
                                            size_t max_bytes);
absl::StatusOr<JsonArray> ReadArray(JsonValue value, std::string_view param);
absl::StatusOr<JsonObject> ReadObject(JsonValue value, std::string_view param);

}  // namespace hexad
