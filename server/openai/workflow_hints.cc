// What a client says of the workflow that its call belongs to: headers and metadata.

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "server/openai/openai_request.h"
#include "server/openai/request_draft.h"

namespace hexad {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr size_t kMaxParents = 64;

// Ids are logged and shown: printable, and bounded.
absl::Status CheckId(std::string_view id, std::string_view param) {
  if (id.empty() || id.size() > kMaxIdBytes) {
    return FieldError(param, absl::StrFormat("it must have 1 to %d bytes", kMaxIdBytes));
  }
  const bool printable = std::none_of(id.begin(), id.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  return printable ? absl::OkStatus() : FieldError(param, "it has control characters");
}

absl::Status AddParent(std::string_view id, std::string_view param, WorkflowHints* hints) {
  while (!id.empty() && absl::ascii_isspace(static_cast<unsigned char>(id.front()))) {
    id.remove_prefix(1);
  }
  while (!id.empty() && absl::ascii_isspace(static_cast<unsigned char>(id.back()))) {
    id.remove_suffix(1);
  }
  if (id.empty()) return absl::OkStatus();
  if (hints->parents.size() == kMaxParents) {
    return FieldError(param, absl::StrFormat("there are more than %d parents", kMaxParents));
  }
  hints->parents.emplace_back(id);
  return CheckId(id, param);
}

absl::Status AddParents(std::string_view list, std::string_view param, WorkflowHints* hints) {
  hints->parents.clear();
  for (;;) {
    const size_t comma = list.find(',');
    absl::Status status = AddParent(list.substr(0, comma), param, hints);
    if (!status.ok() || comma == std::string_view::npos) return status;
    list.remove_prefix(comma + 1);
  }
}

std::string* IdMember(std::string_view name, WorkflowHints* hints) {
  if (name == "workflow") return &hints->workflow;
  if (name == "call") return &hints->call;
  if (name == "agent") return &hints->agent;
  return nullptr;
}

}  // namespace

absl::Status ReadMetadata(JsonValue value, std::string_view name, RequestDraft* draft) {
  constexpr std::string_view kPrefix = "hexad_";
  const auto object = ReadObject(value, name);
  if (!object.ok()) return object.status();
  WorkflowHints hints;
  for (const auto& [key, entry] : *object) {
    if (!key.starts_with(kPrefix) || entry.is_null()) continue;
    const std::string_view field = key.substr(kPrefix.size());
    std::string* const member = IdMember(field, &hints);
    if (member == nullptr && field != "parents") continue;
    const std::string param = absl::StrFormat("metadata.%s", key);
    absl::Status status;
    JsonArray array;
    if (member == nullptr && entry.get(array) == simdjson::SUCCESS) {
      hints.parents.clear();
      for (const JsonValue parent : array) {
        const auto text = ReadString(parent, param, kMaxIdBytes);
        status = text.ok() ? AddParent(*text, param, &hints) : text.status();
        if (!status.ok()) return status;
      }
    } else {
      const auto text = ReadString(entry, param, kMaxIdBytes * kMaxParents);
      if (!text.ok()) return text.status();
      if (member != nullptr) *member = std::string(*text);
      status = member != nullptr ? CheckId(*text, param) : AddParents(*text, param, &hints);
    }
    if (!status.ok()) return status;
    hints.source = "metadata";
  }
  draft->call().workflow = std::move(hints);
  return absl::OkStatus();
}

absl::Status ReadWorkflowHeaders(const HttpHeaders& headers, WorkflowHints* hints) {
  constexpr std::string_view kPrefix = "x-hexad-";
  WorkflowHints found;
  for (const auto& [name, value] : headers) {
    const std::string_view full = name;
    if (!full.starts_with(kPrefix)) continue;
    const std::string_view field = full.substr(kPrefix.size());
    std::string* const member = IdMember(field, &found);
    if (member == nullptr && field != "parents") continue;
    absl::Status status =
        member != nullptr ? CheckId(value, name) : AddParents(value, name, &found);
    if (!status.ok()) return status;
    if (member != nullptr) *member = value;
    found.source = "header";
  }
  if (!found.source.empty()) *hints = std::move(found);
  return absl::OkStatus();
}

}  // namespace hexad
