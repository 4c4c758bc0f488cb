#pragma once

// One HTTP GET, without following redirects, over libcurl. Blocking; safe from any thread.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hexad {

struct HttpGetRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  int connect_timeout_seconds = 20;
  // Ends a transfer that brings nothing for so long.
  int stall_timeout_seconds = 60;
};

struct HttpGetResponse {
  long status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; the last of equal ones
  std::string redirect_url;                    // absolute, when the answer is a redirect
  std::string error_body;                      // the first 2 KiB of an answer outside 2xx
  int64_t ContentLength() const;               // -1: not said
};

struct HttpGetHandlers {
  // Once, when the head of a 2xx answer is there, before its body.
  std::function<absl::Status(const HttpGetResponse&)> on_start;
  std::function<absl::Status(std::span<const char>)> on_bytes;
};

// Unavailable: what may pass with another try (no connection, cut transfer, stall). A status that
// a handler returned comes back as it is.
absl::StatusOr<HttpGetResponse> HttpGet(const HttpGetRequest& request,
                                        const HttpGetHandlers& handlers);

}  // namespace hexad
