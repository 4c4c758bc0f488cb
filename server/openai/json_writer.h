#pragma once

// Writes one JSON text by appending. Commas are placed here; nesting is the caller's business.
// Whatever bytes come in, what goes out is valid UTF-8 and valid JSON.

#include <cstdint>
#include <string>
#include <string_view>

namespace hexad {

class JsonWriter final {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view name);
  JsonWriter& String(std::string_view text);  // malformed UTF-8 becomes U+FFFD
  JsonWriter& Int(int64_t value);
  // The shortest text that reads back equal. JSON has no infinities: beyond 9999 it is cut to it,
  // which is what log probabilities of impossible tokens are by convention; NaN is 0.
  JsonWriter& Float(float value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Bytes(std::string_view bytes);  // as an array of integers
  JsonWriter& Raw(std::string_view json);     // a whole value

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void BeforeValue();

  std::string* const out_;
  bool needs_comma_ = false;
};

}  // namespace hexad
