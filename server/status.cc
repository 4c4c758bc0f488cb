#include "server/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace hexad {
namespace {

constexpr char kParamPayload[] = "hexad/param";
constexpr char kCodePayload[] = "hexad/code";
constexpr char kRetryPayload[] = "hexad/retry-after";

std::string Payload(const absl::Status& status, const char* name) {
  const auto payload = status.GetPayload(name);
  return payload.has_value() ? std::string(*payload) : std::string();
}

void AppendJsonString(std::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

}  // namespace

absl::Status WithParam(absl::Status status, std::string_view param, std::string_view code) {
  if (status.ok()) return status;
  status.SetPayload(kParamPayload, absl::Cord(std::string(param)));
  if (!code.empty()) status.SetPayload(kCodePayload, absl::Cord(std::string(code)));
  return status;
}

absl::Status WithRetryAfter(absl::Status status, int seconds) {
  if (!status.ok()) status.SetPayload(kRetryPayload, absl::Cord(std::to_string(seconds)));
  return status;
}

HttpError ToHttpError(const absl::Status& status) {
  HttpError error;
  error.message = std::string(status.message());
  error.param = Payload(status, kParamPayload);
  error.code = Payload(status, kCodePayload);
  int seconds = 0;
  if (absl::SimpleAtoi(Payload(status, kRetryPayload), &seconds)) {
    error.retry_after_seconds = seconds;
  }
  const auto set = [&error](int http_status, const char* type, const char* code) {
    error.status = http_status;
    error.type = type;
    if (error.code.empty()) error.code = code;
  };
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      set(400, "invalid_request_error", "");
      break;
    case absl::StatusCode::kUnauthenticated:
      set(401, "invalid_request_error", "invalid_api_key");
      break;
    case absl::StatusCode::kPermissionDenied:
      set(403, "invalid_request_error", "");
      break;
    case absl::StatusCode::kNotFound:
      set(404, "invalid_request_error", "model_not_found");
      break;
    case absl::StatusCode::kResourceExhausted:
      set(429, "rate_limit_exceeded", "rate_limit_exceeded");
      break;
    case absl::StatusCode::kUnavailable:
      set(503, "server_error", "overloaded");
      if (error.retry_after_seconds == 0) error.retry_after_seconds = 1;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      set(504, "server_error", "timeout");
      break;
    case absl::StatusCode::kCancelled:
      set(499, "server_error", "cancelled");
      break;
    default:
      set(500, "server_error", "internal_error");
      error.message =
          "The server had an error while processing the request; its log has the cause.";
  }
  return error;
}

std::string ErrorBody(const HttpError& error) {
  const auto field = [](const std::string& value, std::string* out) {
    if (value.empty()) {
      out->append("null");
    } else {
      AppendJsonString(value, out);
    }
  };
  std::string body = "{\"error\":{\"message\":";
  AppendJsonString(error.message, &body);
  body += ",\"type\":";
  AppendJsonString(error.type, &body);
  body += ",\"param\":";
  field(error.param, &body);
  body += ",\"code\":";
  field(error.code, &body);
  body += "}}";
  return body;
}

}  // namespace hexad
