#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/merge_encoder.h"
#include "engine/tokenizer/score_encoder.h"
#include "engine/tokenizer/special_matcher.h"
#include "engine/tokenizer/tokenizer_data.h"
#include "engine/tokenizer/utf8.h"
#include "engine/tokenizer/vocabulary.h"

namespace hexad {
namespace {

// Offsets inside a text are 32 bits; far above what a request may carry.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(Vocabulary vocabulary, TokenizerData rest)
      : vocabulary_(std::move(vocabulary)), data_(std::move(rest)) {
    end_of_generation_ = vocabulary_.EndOfGeneration(data_);
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
      const TokenType type = vocabulary_.type(id);
      const bool user_defined = type == TokenType::kUserDefined;
      if (user_defined) user_defined_.Add(vocabulary_.text(id), id);
      if (user_defined || type == TokenType::kControl || type == TokenType::kUnknown) {
        special_.Add(vocabulary_.text(id), id);
      }
    }
  }

  absl::Status MakeEncoder() {
    if (data_.model == TokenizerData::Model::kScore) {
      scores_.emplace(vocabulary_, data_.unknown, data_.add_space_prefix);
      return absl::OkStatus();
    }
    auto pretokenizer = Pretokenizer::Make(data_.pre);
    if (!pretokenizer.ok()) return pretokenizer.status();
    auto merges = MergeEncoder::Make(vocabulary_, *std::move(pretokenizer), data_.merges);
    if (!merges.ok()) return merges.status();
    merges_.emplace(*std::move(merges));
    data_.merges = {};
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              EncodeOptions options) const override {
    if (text.size() > kMaxTextBytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "text of %d bytes; at most %d can be tokenised", text.size(), kMaxTextBytes));
    }
    if (const size_t bad = FindInvalidUtf8(text); bad < text.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("text is not valid UTF-8 at byte %d", bad));
    }
    std::vector<TokenId> tokens;
    tokens.reserve(text.size() / 3 + 2);
    if (options.add_special && data_.add_bos && data_.bos >= 0) tokens.push_back(bos());
    const SpecialMatcher& matcher = options.parse_special ? special_ : user_defined_;
    bool after_special = true;
    for (size_t position = 0; position < text.size();) {
      const auto match = matcher.Find(text, position);
      const size_t end = match ? match->begin : text.size();
      if (end > position) {
        const auto plain = text.substr(position, end - position);
        if (absl::Status status = EncodePlain(plain, after_special, tokens); !status.ok()) {
          return status;
        }
        after_special = false;
      }
      if (!match) break;
      tokens.push_back(TokenId{match->id});
      after_special = true;
      position = match->begin + match->length;
    }
    return tokens;
  }

  std::string TokenBytes(TokenId token, bool render_special) const override {
    const auto id = static_cast<int32_t>(token);
    if (!vocabulary_.Contains(id)) return {};
    const std::string& text = vocabulary_.text(id);
    switch (vocabulary_.type(id)) {
      case TokenType::kControl:
      case TokenType::kUnknown:
        return render_special ? text : std::string();
      case TokenType::kUserDefined:
        return text;
      case TokenType::kByte:
        return ByteOf(id);
      case TokenType::kUndefined:
      case TokenType::kNormal:
      case TokenType::kUnused:
        break;
    }
    return scores_ ? scores_->Decode(text) : FromByteLevel(text);
  }

  int32_t vocab_size() const override { return vocabulary_.size(); }
  TokenId bos() const override { return TokenId{data_.bos}; }
  const std::vector<TokenId>& end_of_generation() const override { return end_of_generation_; }
  const std::string& chat_template() const override { return data_.chat_template; }
  std::string_view bos_text() const override { return TextOf(data_.bos); }
  std::string_view eos_text() const override { return TextOf(data_.eos); }

 private:
  absl::Status EncodePlain(std::string_view text, bool after_special,
                           std::vector<TokenId>& tokens) const {
    if (merges_) return merges_->Encode(text, tokens);
    scores_->Encode(text, after_special, tokens);
    return absl::OkStatus();
  }

  std::string ByteOf(int32_t id) const {
    for (int byte = 0; byte < 256; ++byte) {
      if (vocabulary_.byte_token(static_cast<uint8_t>(byte)) == id) {
        return std::string(1, static_cast<char>(byte));
      }
    }
    return {};
  }

  std::string_view TextOf(int32_t id) const {
    return id < 0 ? std::string_view() : std::string_view(vocabulary_.text(id));
  }

  const Vocabulary vocabulary_;
  TokenizerData data_;  // without what the vocabulary and the encoder took
  SpecialMatcher user_defined_;
  SpecialMatcher special_;  // with control tokens
  std::vector<TokenId> end_of_generation_;
  std::optional<ScoreEncoder> scores_;
  std::optional<MergeEncoder> merges_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(TokenizerData data) {
  auto vocabulary = Vocabulary::Make(data);
  if (!vocabulary.ok()) return vocabulary.status();
  auto tokenizer = std::make_unique<BpeTokenizer>(*std::move(vocabulary), std::move(data));
  if (absl::Status status = tokenizer->MakeEncoder(); !status.ok()) return status;
  return tokenizer;
}

}  // namespace hexad
