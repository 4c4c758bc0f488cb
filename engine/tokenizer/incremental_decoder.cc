#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/utf8.h"

namespace hexad {

std::string IncrementalDecoder::Push(TokenId token) {
  pending_ += tokenizer_.TokenBytes(token);
  return TakeWholeCharacters(pending_);
}

std::string IncrementalDecoder::Flush() {
  std::string rest = TakeWholeCharacters(pending_);
  if (!pending_.empty()) rest.append(kReplacementCharacter);
  pending_.clear();
  return rest;
}

}  // namespace hexad
