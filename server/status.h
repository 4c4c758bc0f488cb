#pragma once

// The one mapping of Status to HTTP and gRPC, and the details that an OpenAI error body wants.
// Errors that name a request field carry it as a payload, so that parsing code stays in terms of
// absl::Status.

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hexad {

// The same status with the request field at fault ("messages[0].role") and, optionally, OpenAI's
// machine-readable code ("context_length_exceeded").
absl::Status WithParam(absl::Status status, std::string_view param, std::string_view code = {});
// A status that OpenAI clients must not retry or may retry after a time (seconds), as headers.
absl::Status WithRetryAfter(absl::Status status, int seconds);

struct HttpError {
  int status = 500;  // HTTP status code
  std::string type;  // "invalid_request_error", "server_error", ...
  std::string message;
  std::string param;            // empty: null on the wire
  std::string code;             // empty: null on the wire
  int retry_after_seconds = 0;  // 0: no header
};

// kInvalidArgument 400, kUnauthenticated 401, kPermissionDenied 403, kNotFound 404,
// kResourceExhausted 429, kUnavailable 503, kDeadlineExceeded 504, kCancelled 499, other 500 whose
// message does not leak internals.
HttpError ToHttpError(const absl::Status& status);

// {"error":{"message","type","param","code"}}: all four keys, always.
std::string ErrorBody(const HttpError& error);

}  // namespace hexad
