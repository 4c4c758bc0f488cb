#pragma once

// Byte-level BPE as in GPT-2: text is cut into words, a word's bytes are joined by the ranks of a
// merge list. Sennrich et al. 2016, https://arxiv.org/abs/1508.07909; Radford et al. 2019.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tokenizer/pretokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace hexad {

class SymbolMerger;

class MergeEncoder final {
 public:
  // The vocabulary must outlive the encoder.
  static absl::StatusOr<MergeEncoder> Make(const Vocabulary& vocabulary, Pretokenizer pretokenizer,
                                           const std::vector<std::string>& merges);

  // Appends the tokens of valid UTF-8. A byte without a token is dropped, as in llama.cpp: some
  // vocabularies lack control characters, and no token stands for them.
  absl::Status Encode(std::string_view text, std::vector<TokenId>& out) const;

 private:
  struct Merge {
    int32_t rank;
    int32_t id;
  };

  MergeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer)
      : vocabulary_(vocabulary), pretokenizer_(std::move(pretokenizer)) {}
  void EncodeWord(std::string_view word, SymbolMerger& merger, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  // Ids of pieces: those of tokens, and beyond them pieces that only lead to others.
  std::array<int32_t, 256> byte_pieces_{};
  absl::flat_hash_map<uint64_t, Merge> merges_;  // left id << 32 | right id
};

}  // namespace hexad
