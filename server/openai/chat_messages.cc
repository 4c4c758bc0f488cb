// The messages of a chat request.

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/openai/request_draft.h"
#include "server/status.h"

namespace hexad {
namespace {

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kUnbounded = SIZE_MAX;  // the body's limit holds

absl::Status Unsupported(std::string_view param, std::string_view what) {
  return WithParam(
      absl::InvalidArgumentError(absl::StrFormat("'%s': %s not supported.", param, what)), param,
      "unsupported_parameter");
}

absl::StatusOr<std::string> ReadPart(JsonValue value, const std::string& param) {
  const auto object = ReadObject(value, param);
  if (!object.ok()) return object.status();
  std::string_view type;
  if (object->at_key("type").get(type) != simdjson::SUCCESS) {
    return FieldError(param + ".type", "it must be a string");
  }
  if (type != "text" && type != "refusal") {
    return Unsupported(param + ".type",
                       absl::StrFormat("content of type \"%s\" is", type.substr(0, 64)));
  }
  JsonValue text;
  if (object->at_key(type).get(text) != simdjson::SUCCESS) {
    return FieldError(param, absl::StrFormat("it needs the field \"%s\"", type));
  }
  const auto content = ReadString(text, absl::StrFormat("%s.%s", param, type), kUnbounded);
  if (!content.ok()) return content.status();
  return std::string(*content);
}

// A string, or parts, which are joined by line ends as other servers of open models do.
absl::StatusOr<std::string> ReadContent(JsonValue value, const std::string& param) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  JsonArray parts;
  if (value.get(parts) != simdjson::SUCCESS) {
    return TypeError(param, "a string or an array of content parts", value);
  }
  std::string content;
  size_t index = 0;
  for (const JsonValue part : parts) {
    auto piece = ReadPart(part, absl::StrFormat("%s[%d]", param, index));
    if (!piece.ok()) return piece.status();
    if (index++ > 0) content += '\n';
    content += *piece;
  }
  if (index == 0) return FieldError(param, "the array must not be empty");
  return content;
}

absl::StatusOr<std::string> ReadRole(JsonValue value, const std::string& param) {
  const auto role = ReadString(value, param, 64);
  if (!role.ok()) return role.status();
  for (const std::string_view known : kRoles) {
    if (*role == known) return std::string(*role);
  }
  if (*role == "function") return Unsupported(param, "the role \"function\" is");
  return FieldError(param, "it must be system, developer, user, assistant or tool");
}

absl::StatusOr<ChatMessage> ReadMessage(JsonValue value, const std::string& param) {
  const auto object = ReadObject(value, param);
  if (!object.ok()) return object.status();
  ChatMessage message;
  bool has_content = false;
  std::string refusal;
  for (const auto& [key, entry] : *object) {
    if (entry.is_null()) continue;
    const std::string field = absl::StrFormat("%s.%s", param, key.substr(0, 64));
    absl::Status status;
    if (key == "role") {
      auto role = ReadRole(entry, field);
      if (role.ok()) message.role = *std::move(role);
      status = role.status();
    } else if (key == "content") {
      auto content = ReadContent(entry, field);
      has_content = content.ok();
      if (content.ok()) message.content = *std::move(content);
      status = content.status();
    } else if (key == "name") {
      const auto name = ReadString(entry, field, kMaxNameBytes);
      if (name.ok()) message.name = std::string(*name);
      status = name.status();
    } else if (key == "refusal") {
      const auto text = ReadString(entry, field, kUnbounded);
      if (text.ok()) refusal = std::string(*text);
      status = text.status();
    } else if (key == "tool_calls" || key == "function_call" || key == "audio") {
      JsonArray calls;
      const bool none = entry.get(calls) == simdjson::SUCCESS && calls.size() == 0;
      if (!none) status = Unsupported(field, absl::StrFormat("messages with %s are", key));
    }
    if (!status.ok()) return status;
  }
  if (message.role.empty()) return FieldError(param + ".role", "every message needs a role");
  if (!has_content && message.role == "assistant" && !refusal.empty()) {
    message.content = std::move(refusal);
    has_content = true;
  }
  if (!has_content) return FieldError(param + ".content", "it must be a string");
  return message;
}

}  // namespace

absl::Status ReadMessages(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto array = ReadArray(value, name);
  if (!array.ok()) return array.status();
  std::vector<ChatMessage> messages;
  for (const JsonValue entry : *array) {
    if (messages.size() == static_cast<size_t>(draft->limits->max_messages)) {
      return FieldError(
          name, absl::StrFormat("there are more than %d messages", draft->limits->max_messages));
    }
    auto message = ReadMessage(entry, absl::StrFormat("%s[%d]", name, messages.size()));
    if (!message.ok()) return message.status();
    messages.push_back(*std::move(message));
  }
  if (messages.empty()) return FieldError(name, "there must be at least one message");
  draft->call().input = std::move(messages);
  draft->has_input = true;
  return absl::OkStatus();
}

}  // namespace hexad
