#pragma once

// GPT-2's spelling of bytes as printable characters: printable Latin-1 stands for itself, the other
// 68 bytes for U+0100 and on, so that " " is "Ġ". Radford et al. 2019, encoder.py.

#include <cstdint>
#include <string>
#include <string_view>

namespace hexad {

// The spelling of a byte, and of a run of bytes.
std::string_view ByteLevelSpelling(uint8_t byte);
std::string ToByteLevel(std::string_view bytes);
// The bytes that a spelling stands for; characters outside the alphabet stay as they are.
std::string FromByteLevel(std::string_view spelling);

}  // namespace hexad
