#include "tests/engine/tokenizer/test_vocabularies.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_format.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/utf8.h"

namespace hexad {

TokenizerData ByteLevelData(const std::vector<std::string>& merges, const std::string& pre) {
  TokenizerData data;
  data.model = TokenizerData::Model::kMerge;
  data.pre = pre;
  data.merges = merges;
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.emplace_back(ByteLevelSpelling(static_cast<uint8_t>(byte)));
  }
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    data.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  data.bos = data.eos = static_cast<int32_t>(data.tokens.size());
  for (const char* control : {"<|end|>", "<|im_end|>"}) {
    data.tokens.emplace_back(control);
    data.types.push_back(TokenType::kControl);
  }
  data.tokens.emplace_back("<keep>");
  data.types.push_back(TokenType::kUserDefined);
  data.add_bos = true;
  return data;
}

TokenizerData ScoreData(const std::vector<std::string>& pieces) {
  TokenizerData data;
  data.model = TokenizerData::Model::kScore;
  data.tokens = {"<unk>", "<s>", "</s>"};
  data.types = {TokenType::kUnknown, TokenType::kControl, TokenType::kControl};
  data.unknown = 0;
  data.bos = 1;
  data.eos = 2;
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.push_back(absl::StrFormat("<0x%02X>", byte));
    data.types.push_back(TokenType::kByte);
  }
  data.tokens.emplace_back("<keep>");
  data.types.push_back(TokenType::kUserDefined);
  data.scores.assign(data.tokens.size(), 0.0f);
  for (const std::string& piece : pieces) {
    data.scores.push_back(-static_cast<float>(data.scores.size()));
    data.tokens.push_back(piece);
    data.types.push_back(TokenType::kNormal);
  }
  data.add_bos = true;
  return data;
}

std::vector<int32_t> Ids(const std::vector<TokenId>& tokens) {
  std::vector<int32_t> ids;
  ids.reserve(tokens.size());
  for (TokenId token : tokens) ids.push_back(static_cast<int32_t>(token));
  return ids;
}

std::vector<std::string> Pieces(const Tokenizer& tokenizer, std::string_view text,
                                Tokenizer::EncodeOptions options) {
  const auto tokens = tokenizer.Encode(text, options);
  if (!tokens.ok()) return {tokens.status().ToString()};
  std::vector<std::string> pieces;
  for (TokenId token : *tokens) pieces.push_back(tokenizer.TokenBytes(token, true));
  return pieces;
}

std::string Decode(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  IncrementalDecoder decoder(tokenizer);
  std::string text;
  for (TokenId token : tokens) text += decoder.Push(token);
  return text + decoder.Flush();
}

std::string RandomText(uint64_t seed, int characters) {
  static constexpr char32_t kRanges[][2] = {
      {0x20, 0x7E},     {0x20, 0x7E},     {0x20, 0x7E},       {0x09, 0x0D},
      {0x01, 0x7F},     {0xA0, 0x24F},    {0x300, 0x36F},     {0x400, 0x4FF},
      {0x590, 0x6FF},   {0x900, 0x97F},   {0x2000, 0x206F},   {0x4E00, 0x9FFF},
      {0xAC00, 0xD7A3}, {0xE000, 0xFFFD}, {0x1F300, 0x1FAFF}, {0x10000, 0x10FFFF}};
  std::mt19937_64 random(seed);
  std::string text;
  while (characters > 0) {
    const auto& range = kRanges[random() % std::size(kRanges)];
    const char32_t c = range[0] + static_cast<char32_t>(random() % (range[1] - range[0] + 1));
    for (int run = 1 + static_cast<int>(random() % 3); run > 0 && characters > 0; --run) {
      AppendUtf8(random() % 4 == 0 ? U' ' : c, text);
      --characters;
    }
  }
  return text;
}

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<std::string> ReadXz(const std::string& path) {
  if (!ReadFile(path)) return std::nullopt;
  FILE* pipe = popen(("xz -dc '" + path + "' 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string bytes;
  std::vector<char> buffer(1 << 16);
  size_t got = 0;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    bytes.append(buffer.data(), got);
  }
  if (pclose(pipe) != 0) return std::nullopt;
  return bytes;
}

std::string DataFolder() {
  const char* folder = std::getenv("HEXAD_DATA");
  return folder != nullptr ? folder : std::string(HEXAD_SOURCE_DIR) + "/../shared/data";
}

}  // namespace hexad
