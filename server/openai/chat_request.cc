#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/openai/openai_request.h"
#include "server/openai/request_draft.h"
#include "server/status.h"

namespace hexad {
namespace {

absl::Status ReadMaxCompletionTokens(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 1, std::numeric_limits<int32_t>::max());
  if (!number.ok()) return number.status();
  draft->max_completion_tokens = static_cast<int32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadLogprobs(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto flag = ReadBool(value, name);
  if (!flag.ok()) return flag.status();
  draft->logprobs = *flag;
  return absl::OkStatus();
}

absl::Status ReadTopLogprobs(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 0, 20);
  if (!number.ok()) return number.status();
  draft->top_logprobs = static_cast<int32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadTools(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto array = ReadArray(value, name);
  if (!array.ok()) return array.status();
  draft->has_tools = array->size() > 0;
  return absl::OkStatus();
}

absl::Status ReadToolChoice(JsonValue value, std::string_view name, RequestDraft* draft) {
  std::string_view word;
  if (value.get(word) != simdjson::SUCCESS) return RefuseField(value, name, draft);
  draft->tool_choice_is_none = word == "none";
  // "auto" without tools is what some clients always send.
  if (word == "none" || word == "auto") return absl::OkStatus();
  return RefuseField(value, name, draft);
}

absl::Status ReadFunctionCall(JsonValue value, std::string_view name, RequestDraft* draft) {
  std::string_view word;
  if (value.get(word) == simdjson::SUCCESS && (word == "none" || word == "auto")) {
    return absl::OkStatus();
  }
  return RefuseField(value, name, draft);
}

absl::Status ReadModalities(JsonValue value, std::string_view name, RequestDraft*) {
  const auto array = ReadArray(value, name);
  if (!array.ok()) return array.status();
  for (const JsonValue entry : *array) {
    const auto text = ReadString(entry, name, 64);
    if (!text.ok()) return text.status();
    if (*text != "text") return FieldError(name, "only \"text\" is supported");
  }
  return absl::OkStatus();
}

absl::Status RefuseFalse(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto flag = ReadBool(value, name);
  if (!flag.ok()) return flag.status();
  return *flag ? absl::OkStatus() : RefuseField(value, name, draft);
}

constexpr auto kChatFields = std::to_array<RequestField>({
    {"messages", ReadMessages},
    {"max_completion_tokens", ReadMaxCompletionTokens},
    {"logprobs", ReadLogprobs},
    {"top_logprobs", ReadTopLogprobs},
    {"tools", ReadTools},
    {"tool_choice", ReadToolChoice},
    {"functions", RefuseNotEmpty},
    {"function_call", ReadFunctionCall},
    {"modalities", ReadModalities},
    {"audio", RefuseField},
    {"web_search_options", RefuseField},
    {"chat_template", RefuseField},
    {"chat_template_kwargs", RefuseNotEmpty},
    {"documents", RefuseNotEmpty},
    {"add_generation_prompt", RefuseFalse},
    {"continue_final_message", RefuseTrue},
    {"echo", RefuseTrue},
});

}  // namespace

absl::StatusOr<OpenAiRequest> ParseChatRequest(std::string body, const RequestLimits& limits) {
  const auto document = JsonDocument::Parse(std::move(body));
  if (!document.ok()) return document.status();
  RequestDraft draft;
  draft.limits = &limits;
  absl::Status status = ReadFields(*document, kChatFields, &draft);
  if (!status.ok()) return status;
  GenerateCall& call = draft.call();
  const auto& max_tokens =
      draft.max_completion_tokens.has_value() ? draft.max_completion_tokens : draft.max_tokens;
  call.max_new_tokens = max_tokens.value_or(-1);
  status = FinishDraft(&draft);
  if (!status.ok()) return status;
  if (!draft.has_input) return FieldError("messages", "the request needs messages");
  if (draft.has_tools && !draft.tool_choice_is_none) {
    return RefuseField(document->root(), "tools", &draft);
  }
  if (draft.top_logprobs.value_or(0) > 0 && !draft.logprobs) {
    return FieldError("top_logprobs", "it needs 'logprobs' to be true");
  }
  if (draft.logprobs) call.sampling.num_logprobs = draft.top_logprobs.value_or(0);
  return std::move(draft.request);
}

}  // namespace hexad
