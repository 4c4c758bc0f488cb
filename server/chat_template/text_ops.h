#pragma once

// Python's str operations on UTF-8: positions count characters.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/utf8.h"  // CountCharacters

namespace hexad {

// Each character as a piece of the text.
std::vector<std::string_view> SplitCharacters(std::string_view text);
// Linear in both lengths, whatever they hold; npos when absent.
size_t FindText(std::string_view text, std::string_view wanted, size_t from = 0);

// Python's white space, which includes the Unicode spaces.
bool IsUnicodeSpace(char32_t c);
// Takes characters off an end or both; `characters` nullopt: white space.
enum class StripSide { kLeft, kRight, kBoth };
std::string_view Strip(std::string_view text, std::optional<std::string_view> characters,
                       StripSide side);

// `limit` < 0: no limit. `separator` is not empty.
std::vector<std::string_view> SplitText(std::string_view text, std::string_view separator,
                                        int64_t limit);
std::vector<std::string_view> SplitTextFromRight(std::string_view text, std::string_view separator,
                                                 int64_t limit);
std::vector<std::string_view> SplitWhitespace(std::string_view text, int64_t limit);
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// Latin, Greek, Cyrillic and Armenian letters change; other scripts that have case do not.
char32_t LowerCharacter(char32_t c);
char32_t UpperCharacter(char32_t c);
std::string LowerText(std::string_view text);
std::string UpperText(std::string_view text);
std::string CapitalizeText(std::string_view text);
std::string TitleText(std::string_view text);

}  // namespace hexad
