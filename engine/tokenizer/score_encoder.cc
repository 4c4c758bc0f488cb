#include "engine/tokenizer/score_encoder.h"

#include "engine/tokenizer/merge_symbols.h"
#include "engine/tokenizer/utf8.h"

namespace hexad {

void ScoreEncoder::Encode(std::string_view text, bool after_special,
                          std::vector<TokenId>& out) const {
  if (text.empty()) return;
  std::string marked;
  marked.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  if (add_space_prefix_ && after_special) marked.append(kSpaceMark);
  for (char c : text) {
    if (c == ' ') {
      marked.append(kSpaceMark);
    } else {
      marked.push_back(c);
    }
  }
  SymbolMerger merger;
  merger.symbols().reserve(marked.size());
  for (size_t position = 0; position < marked.size();) {
    const size_t end = position + DecodeUtf8(marked, position).length;
    merger.Append(static_cast<uint32_t>(position), static_cast<uint32_t>(end), -1);
    position = end;
  }
  const std::string_view view = marked;
  merger.Run([&](const Symbol& left, const Symbol& right, Join& join) {
    const auto id = vocabulary_.Find(view.substr(left.begin, right.end - left.begin));
    if (!id) return false;
    join = {-static_cast<double>(vocabulary_.score(*id)), *id};
    return true;
  });
  for (const Symbol& symbol : merger.symbols()) {
    if (symbol.begin == symbol.end) continue;
    Emit(view.substr(symbol.begin, symbol.end - symbol.begin), symbol.id, out);
  }
}

void ScoreEncoder::Emit(std::string_view piece, int32_t id, std::vector<TokenId>& out) const {
  if (id < 0) id = vocabulary_.Find(piece).value_or(-1);
  if (id >= 0) {
    out.push_back(TokenId{id});
    return;
  }
  for (char c : piece) {
    int32_t byte_id = vocabulary_.byte_token(static_cast<uint8_t>(c));
    if (byte_id < 0) byte_id = unknown_;
    if (byte_id >= 0) out.push_back(TokenId{byte_id});
  }
}

std::string ScoreEncoder::Decode(std::string_view token_text) const {
  std::string bytes;
  for (size_t position = 0; position < token_text.size();) {
    if (token_text.compare(position, kSpaceMark.size(), kSpaceMark) == 0) {
      bytes.push_back(' ');
      position += kSpaceMark.size();
    } else {
      bytes.push_back(token_text[position++]);
    }
  }
  return bytes;
}

}  // namespace hexad
