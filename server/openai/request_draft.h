#pragma once

// A request while its fields are read, in whatever order they come. Internal to server/openai.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "server/openai/json_fields.h"
#include "server/openai/openai_request.h"

namespace hexad {

struct RequestDraft {
  const RequestLimits* limits = nullptr;
  OpenAiRequest request;
  std::optional<int32_t> max_tokens;
  std::optional<int32_t> max_completion_tokens;
  std::optional<int32_t> top_logprobs;
  bool logprobs = false;
  bool has_input = false;
  bool has_stream_options = false;
  bool has_tools = false;
  bool tool_choice_is_none = false;

  GenerateCall& call() { return request.call; }
  SamplingParams& sampling() { return request.call.sampling; }
};

// Reads a value that is not null into the draft. `name` is the field's name.
using FieldReader = absl::Status (*)(JsonValue value, std::string_view name, RequestDraft* draft);
struct RequestField {
  std::string_view name;
  FieldReader read;
};

// What both endpoints take (sampling, limits, streaming, workflow hints) and what both refuse.
std::span<const RequestField> CommonFields();

// Gives every member of the body to the reader of its name in `own`, else in CommonFields.
absl::Status ReadFields(const JsonDocument& document, std::span<const RequestField> own,
                        RequestDraft* draft);

// Checks that need all fields, the same for both endpoints.
absl::Status FinishDraft(RequestDraft* draft);

// Readers that more than one table uses.
absl::Status RefuseField(JsonValue value, std::string_view name, RequestDraft* draft);
absl::Status RefuseTrue(JsonValue value, std::string_view name, RequestDraft* draft);
absl::Status RefuseNotEmpty(JsonValue value, std::string_view name, RequestDraft* draft);

// The messages of a chat.
absl::Status ReadMessages(JsonValue value, std::string_view name, RequestDraft* draft);

// metadata.hexad_*; other members are the client's own.
absl::Status ReadMetadata(JsonValue value, std::string_view name, RequestDraft* draft);

}  // namespace hexad
