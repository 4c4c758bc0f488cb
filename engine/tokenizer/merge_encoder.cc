#include "engine/tokenizer/merge_encoder.h"

#include "absl/strings/str_format.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/merge_symbols.h"

namespace hexad {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

// Gives pieces that are no tokens ids of their own, beyond the vocabulary.
class PieceIds final {
 public:
  explicit PieceIds(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  int32_t Get(std::string_view piece) {
    if (const auto id = vocabulary_.Find(piece)) return *id;
    const auto next = static_cast<int32_t>(vocabulary_.size() + extra_.size());
    return extra_.try_emplace(std::string(piece), next).first->second;
  }

 private:
  const Vocabulary& vocabulary_;
  absl::flat_hash_map<std::string, int32_t> extra_;
};

}  // namespace

absl::StatusOr<MergeEncoder> MergeEncoder::Make(const Vocabulary& vocabulary,
                                                Pretokenizer pretokenizer,
                                                const std::vector<std::string>& merges) {
  MergeEncoder encoder(vocabulary, std::move(pretokenizer));
  // Ids stay far below 2^31: every merge adds at most three pieces.
  if (merges.size() > (size_t{1} << 27)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("tokenizer: %d merges are too many", merges.size()));
  }
  PieceIds pieces(vocabulary);
  for (int byte = 0; byte < 256; ++byte) {
    encoder.byte_pieces_[byte] = pieces.Get(ByteLevelSpelling(static_cast<uint8_t>(byte)));
  }
  encoder.merges_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const size_t space = merge.find(' ', 1);  // neither side is empty
    if (space == std::string_view::npos || space + 1 >= merge.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("tokenizer: merge %d is not two pieces with a space between", i));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const int32_t left_id = pieces.Get(left);
    const int32_t right_id = pieces.Get(right);
    const int32_t id = pieces.Get(std::string(left) + std::string(right));
    encoder.merges_.try_emplace(PairKey(left_id, right_id), Merge{static_cast<int32_t>(i), id});
  }
  return encoder;
}

absl::Status MergeEncoder::Encode(std::string_view text, std::vector<TokenId>& out) const {
  const auto words = pretokenizer_.Split(text);
  if (!words.ok()) return words.status();
  SymbolMerger merger;
  for (std::string_view word : *words) EncodeWord(word, merger, out);
  return absl::OkStatus();
}

void MergeEncoder::EncodeWord(std::string_view word, SymbolMerger& merger,
                              std::vector<TokenId>& out) const {
  if (pretokenizer_.whole_words_first() && word.size() <= vocabulary_.longest_token_bytes()) {
    if (const auto id = vocabulary_.Find(ToByteLevel(word))) {
      out.push_back(TokenId{*id});
      return;
    }
  }
  merger.Clear();
  for (size_t i = 0; i < word.size(); ++i) {
    const auto begin = static_cast<uint32_t>(i);
    merger.Append(begin, begin + 1, byte_pieces_[static_cast<uint8_t>(word[i])]);
  }
  merger.Run([this](const Symbol& left, const Symbol& right, Join& join) {
    const auto merge = merges_.find(PairKey(left.id, right.id));
    if (merge == merges_.end()) return false;
    join = {static_cast<double>(merge->second.rank), merge->second.id};
    return true;
  });
  for (const Symbol& symbol : merger.symbols()) {
    if (symbol.begin == symbol.end) continue;
    if (vocabulary_.Contains(symbol.id)) {
      out.push_back(TokenId{symbol.id});
      continue;
    }
    for (uint32_t i = symbol.begin; i < symbol.end; ++i) {
      const int32_t byte_id = byte_pieces_[static_cast<uint8_t>(word[i])];
      if (vocabulary_.Contains(byte_id)) out.push_back(TokenId{byte_id});
    }
  }
}

}  // namespace hexad
