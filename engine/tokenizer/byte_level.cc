#include "engine/tokenizer/byte_level.h"

#include <array>

#include "engine/tokenizer/utf8.h"

namespace hexad {
namespace {

constexpr char32_t kFirstShifted = 0x100;
constexpr int kShiftedBytes = 68;

constexpr bool IsPrintable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<std::string, 256> spelling;
  std::array<uint8_t, kShiftedBytes> shifted{};  // U+0100 + i -> byte
};

const Alphabet& GetAlphabet() {
  static const Alphabet* const alphabet = [] {
    auto* made = new Alphabet;
    int next = 0;
    for (int byte = 0; byte < 256; ++byte) {
      char32_t code_point = static_cast<char32_t>(byte);
      if (!IsPrintable(byte)) {
        made->shifted[next] = static_cast<uint8_t>(byte);
        code_point = kFirstShifted + next++;
      }
      AppendUtf8(code_point, made->spelling[byte]);
    }
    return made;
  }();
  return *alphabet;
}

}  // namespace

std::string_view ByteLevelSpelling(uint8_t byte) { return GetAlphabet().spelling[byte]; }

std::string ToByteLevel(std::string_view bytes) {
  const Alphabet& alphabet = GetAlphabet();
  std::string spelling;
  spelling.reserve(bytes.size() * 2);
  for (char c : bytes) spelling += alphabet.spelling[static_cast<uint8_t>(c)];
  return spelling;
}

std::string FromByteLevel(std::string_view spelling) {
  const Alphabet& alphabet = GetAlphabet();
  std::string bytes;
  for (size_t position = 0; position < spelling.size();) {
    const Utf8Char c = DecodeUtf8(spelling, position);
    const bool valid = c.kind == Utf8Kind::kValid;
    if (valid && c.code_point < 0x100 && IsPrintable(static_cast<int>(c.code_point))) {
      bytes.push_back(static_cast<char>(c.code_point));
    } else if (valid && c.code_point >= kFirstShifted &&
               c.code_point < kFirstShifted + kShiftedBytes) {
      bytes.push_back(static_cast<char>(alphabet.shifted[c.code_point - kFirstShifted]));
    } else {
      bytes.append(spelling.substr(position, c.length));
    }
    position += c.length;
  }
  return bytes;
}

}  // namespace hexad
