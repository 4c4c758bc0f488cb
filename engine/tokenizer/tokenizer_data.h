#pragma once

// What a tokenizer is made of, apart from the file it came in: GGUF metadata fills it, and so can
// a test or another file format.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/tokenizer.h"

namespace hexad {

// The values of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // never made from ordinary text
  kUserDefined = 4,  // always matched whole, before anything else
  kUnused = 5,
  kByte = 6,  // "<0xXX>"
};

struct TokenizerData {
  enum class Model {
    kScore,  // "llama": SentencePiece's BPE, merging by score, falling back to byte tokens
    kMerge,  // "gpt2": byte-level BPE, merging by rank inside the words of a pre-tokeniser
  };
  Model model = Model::kMerge;
  std::string pre = "default";  // kMerge: the pre-tokeniser's name, see pretokenizer.h

  std::vector<std::string> tokens;
  std::vector<TokenType> types;     // empty: all normal
  std::vector<float> scores;        // kScore: one a token
  std::vector<std::string> merges;  // kMerge: "left right", best first

  int32_t bos = -1;  // -1: none
  int32_t eos = -1;
  std::vector<int32_t> end_of_generation;  // besides eos
  int32_t unknown = -1;

  bool add_bos = false;           // whether add_special means anything
  bool add_space_prefix = false;  // kScore: a space before the text and after each special token
  std::string chat_template;
};

// Validates everything (ids in range, lengths equal, merges well-formed): InvalidArgument says what
// is wrong; Unimplemented names an unknown pre-tokeniser.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(TokenizerData data);

}  // namespace hexad
