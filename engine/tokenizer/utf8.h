#pragma once

// Strict UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hexad {

enum class Utf8Kind : uint8_t {
  kValid,
  kInvalid,     // these bytes start no character, whatever follows
  kIncomplete,  // the text ends inside what may still become a character
};

struct Utf8Char {
  Utf8Kind kind = Utf8Kind::kInvalid;
  uint8_t length = 1;       // bytes; of a bad sequence its maximal subpart (Unicode 3.9, U+FFFD)
  char32_t code_point = 0;  // only when valid
};

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// The character that starts at text[position]. Requires position < text.size().
Utf8Char DecodeUtf8(std::string_view text, size_t position);
// Bytes of the valid character at text[position], 1 to 4; 0 when what is there is invalid or cut.
size_t ValidUtf8Length(std::string_view text, size_t position);
// Appends the encoding of a scalar value; anything else as U+FFFD.
void AppendUtf8(char32_t code_point, std::string& out);
// The offset of the first byte that is not part of valid UTF-8; text.size() when all is.
size_t FindInvalidUtf8(std::string_view text);
// Moves the whole characters at the front of `pending` to the result, bad sequences as U+FFFD, and
// leaves in `pending` the at most 3 bytes of an incomplete last character.
std::string TakeWholeCharacters(std::string& pending);
// Characters (code points) of valid UTF-8.
int64_t CountCharacters(std::string_view text);

}  // namespace hexad
