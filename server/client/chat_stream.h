#pragma once

// Reads what OpenAI-compatible servers answer: chunks of a stream, whole answers, error bodies.
// Tolerant: unknown fields are skipped, missing ones are empty; nothing a server sends is fatal.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hexad {

struct TokenUsage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
};

struct ChatPiece {
  enum class Kind { kChunk, kDone, kError, kMalformed };
  Kind kind = Kind::kChunk;
  std::string text;       // of the first choice
  std::string reasoning;  // reasoning_content of the first choice
  std::string finish_reason;
  std::optional<TokenUsage> usage;
  std::string message;  // kError, kMalformed
};

class ChatDecoder final {
 public:
  ChatDecoder();
  ~ChatDecoder();
  // The data of one event: a chat or completion chunk, an error, or [DONE].
  ChatPiece Event(std::string_view data);
  // The body of an answer that is no stream.
  ChatPiece Answer(std::string_view body);

 private:
  struct Parser;
  ChatPiece Decode(std::string_view json, const char* choice_key);
  std::unique_ptr<Parser> parser_;
};

// What an error body says: OpenAI's nested form, flat forms, else its first 200 bytes. Printable.
std::string ErrorMessageOf(std::string_view body);

// The id of the first model of a GET /v1/models answer.
absl::StatusOr<std::string> FirstModelOf(std::string_view body);

}  // namespace hexad
