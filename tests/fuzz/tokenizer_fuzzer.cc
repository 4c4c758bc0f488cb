// Tokenizers made of hostile data, and text through whatever could be made: ids stay inside the
// vocabulary, decoded text is valid UTF-8, and only invalid UTF-8 is refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/tokenizer_data.h"
#include "engine/tokenizer/utf8.h"

namespace {

using hexad::TokenizerData;
using hexad::TokenType;

// The first byte says which tokenizer; lines up to an empty one are tokens or merges; the rest is
// text.
std::vector<std::string_view> TakeLines(std::string_view& input) {
  std::vector<std::string_view> lines;
  while (!input.empty() && lines.size() < 64) {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    if (line.empty()) break;
    lines.push_back(line);
  }
  return lines;
}

TokenizerData MakeData(uint8_t choice, const std::vector<std::string_view>& lines) {
  static constexpr const char* kPre[] = {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"};
  TokenizerData data;
  const bool score = choice % 2 == 1;
  data.model = score ? TokenizerData::Model::kScore : TokenizerData::Model::kMerge;
  data.pre = kPre[(choice / 2) % 5];
  data.add_space_prefix = choice >= 128;
  for (int byte = 0; byte < 256; ++byte) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    data.tokens.push_back(score
                              ? std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">"
                              : std::string(hexad::ByteLevelSpelling(static_cast<uint8_t>(byte))));
    data.types.push_back(score ? TokenType::kByte : TokenType::kNormal);
  }
  for (std::string_view line : lines) {
    if (!score && line.find(' ', 1) != std::string_view::npos && line.back() != ' ') {
      data.merges.emplace_back(line);
      const size_t space = line.find(' ', 1);
      data.tokens.push_back(std::string(line.substr(0, space)) +
                            std::string(line.substr(space + 1)));
      data.types.push_back(TokenType::kNormal);
    } else {
      data.tokens.emplace_back(line);
      data.types.push_back(line[0] == '<'   ? TokenType::kControl
                           : line[0] == '#' ? TokenType::kUserDefined
                                            : TokenType::kNormal);
    }
  }
  if (score) {
    for (size_t i = 0; i < data.tokens.size(); ++i) {
      data.scores.push_back(-static_cast<float>(i % 37));
    }
  }
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto lines = TakeLines(input);
  const auto tokenizer = hexad::MakeTokenizer(MakeData(bytes[0], lines));
  if (!tokenizer.ok()) return 0;
  for (bool parse_special : {false, true}) {
    const auto tokens = (*tokenizer)->Encode(input, {.parse_special = parse_special});
    const bool valid = hexad::FindInvalidUtf8(input) == input.size();
    if (tokens.ok() != valid) __builtin_trap();
    if (!tokens.ok()) continue;
    hexad::IncrementalDecoder decoder(**tokenizer);
    std::string text;
    for (hexad::TokenId token : *tokens) {
      if (static_cast<int32_t>(token) < 0 ||
          static_cast<int32_t>(token) >= (*tokenizer)->vocab_size()) {
        __builtin_trap();
      }
      text += decoder.Push(token);
    }
    text += decoder.Flush();
    if (hexad::FindInvalidUtf8(text) != text.size()) __builtin_trap();
  }
  return 0;
}
