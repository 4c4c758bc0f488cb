#pragma once

// Text to tokens and back. Immutable after construction: any number of threads may share one.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvcache/core/types.h"

namespace hexad {

class GgufFile;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // From a GGUF file's tokenizer.ggml.* metadata: model "llama" (SentencePiece-style BPE with byte
  // fallback) or "gpt2" (byte-level BPE with the pre-tokeniser that tokenizer.ggml.pre names).
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(const GgufFile& file);

  struct EncodeOptions {
    bool add_special = false;    // the model's own beginning-of-sequence token
    bool parse_special = false;  // control tokens written in the text become those tokens
  };
  // Invalid UTF-8 is InvalidArgument; text never aborts or throws.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                                      EncodeOptions options) const = 0;

  // The bytes that a token stands for: possibly part of a UTF-8 sequence, empty for control tokens
  // unless `render_special`.
  virtual std::string TokenBytes(TokenId token, bool render_special = false) const = 0;

  virtual int32_t vocab_size() const = 0;
  virtual TokenId bos() const = 0;  // TokenId{-1} when the model has none
  virtual const std::vector<TokenId>& end_of_generation() const = 0;  // eos, eot, ...
  virtual const std::string& chat_template() const = 0;  // Jinja source; empty when none
  virtual std::string_view bos_text() const = 0;
  virtual std::string_view eos_text() const = 0;
};

// Tokens arrive one by one, text leaves in whole UTF-8 characters. Bytes that can no longer become
// valid are replaced by U+FFFD.
class IncrementalDecoder {
 public:
  explicit IncrementalDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  // The text that became complete with `token`.
  std::string Push(TokenId token);
  // What is left at the end, incomplete bytes as U+FFFD.
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  std::string pending_;  // bytes of an incomplete character, at most 3
};

}  // namespace hexad
