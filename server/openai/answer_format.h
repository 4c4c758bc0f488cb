#pragma once

// Answers as OpenAI writes them: chunks of a stream, whole bodies. Pure text, no I/O.
//
// Chunk rules that clients depend on: id, created and model never change; `choices` is always an
// array and `finish_reason` is present even when null; the first chunk of a choice holds the role
// and empty content, the last an empty delta with the finish reason, never merged with content;
// with include_usage every chunk has "usage":null but the last, which has no choices.
// with_token_ids adds vLLM's token_ids to every choice that has text: all of the answer, without
// the stop token.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/serving/generate.h"
#include "server/status.h"

namespace hexad {

enum class AnswerKind : uint8_t { kChat, kCompletion };

struct AnswerIdentity {
  AnswerKind kind = AnswerKind::kChat;
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  int64_t created_unix = 0;
  std::string model;
  std::string system_fingerprint;  // empty: left out
  bool with_logprobs = false;
  bool with_token_ids = false;
  bool include_usage = false;  // of a stream
};

// One choice of an answer that is sent whole.
struct ChoiceAnswer {
  std::string text;
  std::vector<TextLogprob> logprobs;
  FinishReason reason = FinishReason::kFailed;
  std::vector<TokenId> tokens;
};

inline constexpr char kStreamDone[] = "data: [DONE]\n\n";

// One `data:` event with the error body; after it a stream ends without a finish_reason.
std::string ErrorEvent(const HttpError& error);

class AnswerFormat final {
 public:
  explicit AnswerFormat(AnswerIdentity identity);

  // Events, each ready to be written. REQUIRES: kStop or kLength for FinishChunk.
  std::string FirstChunk(int32_t choice) const;  // empty for plain completions, which have none
  // `text_offset`: characters of the choice before this delta; only plain completions say it.
  std::string DeltaChunk(int32_t choice, const TextDelta& delta, int64_t text_offset) const;
  std::string FinishChunk(int32_t choice, FinishReason reason) const;
  std::string UsageChunk(const Usage& usage) const;

  std::string Whole(std::span<const ChoiceAnswer> choices, const Usage& usage) const;

  const AnswerIdentity& identity() const { return identity_; }

 private:
  std::string Chunk(const std::string& choices, const std::string& usage) const;

  const AnswerIdentity identity_;
  std::string chunk_start_;  // up to the elements of choices
};

}  // namespace hexad
