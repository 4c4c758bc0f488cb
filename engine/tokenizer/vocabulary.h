#pragma once

// The tokens of a model, validated: texts, types and the roles of a few of them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/tokenizer/tokenizer_data.h"

namespace hexad {

class Vocabulary final {
 public:
  // Takes tokens, types and scores out of `data` and checks them and the special ids.
  static absl::StatusOr<Vocabulary> Make(TokenizerData& data);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  bool Contains(int32_t id) const { return id >= 0 && id < size(); }
  const std::string& text(int32_t id) const { return tokens_[id]; }
  TokenType type(int32_t id) const { return types_[id]; }
  float score(int32_t id) const { return scores_[id]; }

  // The token that ordinary text can become: control, unknown and byte tokens are not found, so
  // that no spelling in a user's text makes one. Of duplicates the last counts, as in llama.cpp.
  std::optional<int32_t> Find(std::string_view text) const;
  // The token that stands for one byte: "<0xXX>" of byte type; -1 when there is none.
  int32_t byte_token(uint8_t byte) const { return byte_tokens_[byte]; }
  size_t longest_token_bytes() const { return longest_token_bytes_; }

  // eos, eot, ... without duplicates, ascending.
  std::vector<TokenId> EndOfGeneration(const TokenizerData& data) const;

 private:
  Vocabulary() = default;
  void Index();

  // The index holds views into tokens_, which never changes after Index and whose strings stay in
  // place when the vector moves.
  std::vector<std::string> tokens_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;
  std::vector<int32_t> byte_tokens_;
  size_t longest_token_bytes_ = 0;
};

}  // namespace hexad
