#pragma once

// Small vocabularies and file helpers for the tokenizer tests.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_data.h"

namespace hexad {

// All 256 bytes, then the merged pieces, then "<|end|>" (control), "<|im_end|>" (control) and
// "<keep>" (user-defined); bos and eos are "<|end|>".
TokenizerData ByteLevelData(const std::vector<std::string>& merges, const std::string& pre);
// "<unk>", "<s>", "</s>", 256 byte tokens, "<keep>" (user-defined), then pieces scored by order:
// the first is the best.
TokenizerData ScoreData(const std::vector<std::string>& pieces);

std::vector<int32_t> Ids(const std::vector<TokenId>& tokens);
// The tokens' texts, special ones too, for readable expectations.
std::vector<std::string> Pieces(const Tokenizer& tokenizer, std::string_view text,
                                Tokenizer::EncodeOptions options = {});
std::string Decode(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens);

// Seeded random valid UTF-8 that mixes scripts, spaces, newlines and digits.
std::string RandomText(uint64_t seed, int characters);

// A file's bytes; of an .xz file what xz unpacks. Nullopt when it cannot be read.
std::optional<std::string> ReadFile(const std::string& path);
std::optional<std::string> ReadXz(const std::string& path);
// HEXAD_DATA, or the default place of the real test inputs.
std::string DataFolder();

}  // namespace hexad
