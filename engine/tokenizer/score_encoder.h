#pragma once

// SentencePiece's BPE as in llama.cpp's "llama" model: spaces become U+2581, neighbours are joined
// while the vocabulary knows the result, the highest score first; what stays unknown becomes byte
// tokens. Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226.

#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/vocabulary.h"

namespace hexad {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class ScoreEncoder final {
 public:
  // `unknown` is the token for bytes that have none, -1: they are dropped. The vocabulary must
  // outlive this.
  ScoreEncoder(const Vocabulary& vocabulary, int32_t unknown, bool add_space_prefix)
      : vocabulary_(vocabulary), unknown_(unknown), add_space_prefix_(add_space_prefix) {}

  // Appends the tokens of valid UTF-8; `after_special` at the text's start or after a special
  // token, where the space prefix goes.
  void Encode(std::string_view text, bool after_special, std::vector<TokenId>& out) const;
  std::string Decode(std::string_view token_text) const;

 private:
  void Emit(std::string_view piece, int32_t id, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  int32_t unknown_;
  bool add_space_prefix_;
};

}  // namespace hexad
