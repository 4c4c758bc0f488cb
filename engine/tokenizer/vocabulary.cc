#include "engine/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace hexad {
namespace {

// Ends a turn in the common chat formats, whatever the file says about eos.
constexpr std::array<std::string_view, 6> kEndOfTurnNames = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end_of_text|>", "<|endoftext|>"};

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// "<0x1F>" -> 31; -1 for anything else.
int ParseByteToken(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

absl::Status CheckId(const char* role, int32_t id, size_t count) {
  if (id >= -1 && id < static_cast<int64_t>(count)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("tokenizer: %s token %d is outside the vocabulary of %d", role, id, count));
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Make(TokenizerData& data) {
  const size_t count = data.tokens.size();
  if (count == 0) return absl::InvalidArgumentError("tokenizer: the vocabulary is empty");
  if (count > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 4)) {
    return absl::InvalidArgumentError(absl::StrFormat("tokenizer: %d tokens are too many", count));
  }
  if (!data.types.empty() && data.types.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("tokenizer: %d tokens but %d token types", count, data.types.size()));
  }
  const bool scored = data.model == TokenizerData::Model::kScore;
  if (scored && data.scores.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("tokenizer: %d tokens but %d scores", count, data.scores.size()));
  }
  for (const auto& [role, id] : {std::pair{"beginning-of-sequence", data.bos},
                                 {"end-of-sequence", data.eos},
                                 {"unknown", data.unknown}}) {
    if (absl::Status status = CheckId(role, id, count); !status.ok()) return status;
  }
  for (int32_t id : data.end_of_generation) {
    if (absl::Status status = CheckId("end-of-generation", id, count); !status.ok()) return status;
  }
  Vocabulary vocabulary;
  vocabulary.tokens_ = std::move(data.tokens);
  vocabulary.types_ = std::move(data.types);
  if (vocabulary.types_.empty()) vocabulary.types_.assign(count, TokenType::kNormal);
  if (scored) {
    vocabulary.scores_ = std::move(data.scores);
    for (size_t i = 0; i < count; ++i) {
      // A NaN has no place in the order of merges.
      if (std::isnan(vocabulary.scores_[i])) {
        return absl::InvalidArgumentError(
            absl::StrFormat("tokenizer: the score of token %d is not a number", i));
      }
    }
  }
  vocabulary.Index();
  return vocabulary;
}

void Vocabulary::Index() {
  byte_tokens_.assign(256, -1);
  ids_.reserve(tokens_.size());
  for (int32_t id = 0; id < size(); ++id) {
    const std::string& text = tokens_[id];
    switch (types_[id]) {
      case TokenType::kByte:
        if (const int byte = ParseByteToken(text); byte >= 0) byte_tokens_[byte] = id;
        break;
      case TokenType::kUnknown:
      case TokenType::kControl:
        break;
      case TokenType::kUndefined:
      case TokenType::kNormal:
      case TokenType::kUserDefined:
      case TokenType::kUnused:
        if (text.empty()) break;
        ids_.insert_or_assign(absl::string_view(text.data(), text.size()), id);
        longest_token_bytes_ = std::max(longest_token_bytes_, text.size());
        break;
    }
  }
}

std::optional<int32_t> Vocabulary::Find(std::string_view text) const {
  if (text.size() > longest_token_bytes_) return std::nullopt;
  const auto found = ids_.find(absl::string_view(text.data(), text.size()));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<TokenId> Vocabulary::EndOfGeneration(const TokenizerData& data) const {
  std::vector<TokenId> ids;
  if (data.eos >= 0) ids.push_back(TokenId{data.eos});
  for (int32_t id : data.end_of_generation) {
    if (id >= 0) ids.push_back(TokenId{id});
  }
  for (int32_t id = 0; id < size(); ++id) {
    if (types_[id] != TokenType::kControl) continue;
    const bool named = std::find(kEndOfTurnNames.begin(), kEndOfTurnNames.end(), tokens_[id]) !=
                       kEndOfTurnNames.end();
    if (named) ids.push_back(TokenId{id});
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace hexad
