#pragma once

// Cuts text into the words that merges must not cross, by the regular expressions that a model was
// trained with. The names are those of GGUF's tokenizer.ggml.pre.

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hexad {

class Pretokenizer final {
 public:
  // Unimplemented, with the names that are known, for any other name.
  static absl::StatusOr<Pretokenizer> Make(std::string_view name);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  // The words of valid UTF-8, covering every byte in order. Each expression cuts the words that
  // the one before it left; what it does not match is a word too. ResourceExhausted when the
  // regular expression engine reaches a limit. Thread-safe.
  absl::StatusOr<std::vector<std::string_view>> Split(std::string_view text) const;

  // A word that is a token is taken whole, even if merges would not lead to it (Llama 3).
  bool whole_words_first() const { return whole_words_first_; }
  // Whether such models begin a sequence with bos when the file does not say.
  bool add_bos_by_default() const { return add_bos_by_default_; }

 private:
  class Pattern;
  Pretokenizer();

  std::vector<std::unique_ptr<Pattern>> patterns_;
  bool whole_words_first_ = false;
  bool add_bos_by_default_ = false;
};

}  // namespace hexad
