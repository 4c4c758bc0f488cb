#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/openai/openai_request.h"
#include "server/openai/request_draft.h"

namespace hexad {
namespace {

constexpr int32_t kDefaultMaxTokens = 16;  // OpenAI's

absl::Status ReadTokens(const JsonArray& array, std::string_view name, RequestDraft* draft) {
  std::vector<TokenId> tokens;
  for (const JsonValue entry : array) {
    const auto token = ReadInteger(entry, name, 0, std::numeric_limits<int32_t>::max());
    if (!token.ok()) return token.status();
    tokens.push_back(TokenId{static_cast<int32_t>(*token)});
  }
  draft->call().input = std::move(tokens);
  return absl::OkStatus();
}

// "text" or [1, 2].
absl::Status ReadOnePrompt(JsonValue value, std::string_view name, RequestDraft* draft) {
  std::string_view text;
  JsonArray array;
  if (value.get(text) == simdjson::SUCCESS) {
    draft->call().input = std::string(text);
    return absl::OkStatus();
  }
  if (value.get(array) != simdjson::SUCCESS) {
    return TypeError(name, "a string or an array of token ids", value);
  }
  if (array.size() == 0) return FieldError(name, "the array must not be empty");
  return ReadTokens(array, name, draft);
}

// One prompt, or an array that holds one.
absl::Status ReadPrompt(JsonValue value, std::string_view name, RequestDraft* draft) {
  draft->has_input = true;
  JsonArray array;
  JsonValue first;
  const bool nested = value.get(array) == simdjson::SUCCESS &&
                      array.at(0).get(first) == simdjson::SUCCESS &&
                      (first.is_array() || first.is_string());
  if (!nested) return ReadOnePrompt(value, name, draft);
  if (array.size() > 1) return FieldError(name, "one prompt a request is supported");
  return ReadOnePrompt(first, name, draft);
}

absl::Status ReadLogprobs(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 0, 5);
  if (!number.ok()) return number.status();
  draft->sampling().num_logprobs = static_cast<int32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadBestOf(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 1, 20);
  if (!number.ok()) return number.status();
  return *number == 1 ? absl::OkStatus() : RefuseField(value, name, draft);
}

constexpr auto kCompletionFields = std::to_array<RequestField>({
    {"prompt", ReadPrompt},
    {"logprobs", ReadLogprobs},
    {"best_of", ReadBestOf},
    {"echo", RefuseTrue},
    {"suffix", RefuseNotEmpty},
    {"prompt_embeds", RefuseField},
});

}  // namespace

absl::StatusOr<OpenAiRequest> ParseCompletionRequest(std::string body,
                                                     const RequestLimits& limits) {
  const auto document = JsonDocument::Parse(std::move(body));
  if (!document.ok()) return document.status();
  RequestDraft draft;
  draft.limits = &limits;
  absl::Status status = ReadFields(*document, kCompletionFields, &draft);
  if (!status.ok()) return status;
  draft.call().max_new_tokens = draft.max_tokens.value_or(kDefaultMaxTokens);
  status = FinishDraft(&draft);
  if (!status.ok()) return status;
  if (!draft.has_input) return FieldError("prompt", "the request needs a prompt");
  return std::move(draft.request);
}

}  // namespace hexad
