#pragma once

// A GET that follows redirects under hexad's rules: https stays https, plain http is for this
// machine only, a bounded number of hops, and a token is sent to the first origin alone.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/download.h"
#include "server/models/http_get.h"

namespace hexad {

struct FollowedResponse {
  HttpGetResponse response;
  std::string url;           // of the last hop
  std::string linked_etag;   // X-Linked-Etag of a hop at the first origin, unquoted
  int64_t linked_size = -1;  // X-Linked-Size, likewise
};

struct FollowedRequest {
  std::string url;
  std::string token;
  std::vector<std::string> headers;
};

struct FollowedHandlers {
  // The 2xx answer that ends the chain, before its body.
  std::function<absl::Status(const FollowedResponse&)> on_start;
  std::function<absl::Status(std::span<const char>)> on_bytes;
};

absl::StatusOr<FollowedResponse> GetFollowing(const FollowedRequest& request,
                                              const FollowedHandlers& handlers,
                                              const DownloadLimits& limits);

// scheme://host:port of a URL, lower case, default ports written out; empty when malformed.
std::string OriginOf(const std::string& url);

// An answer outside 2xx as a status: Unauthenticated 401, PermissionDenied 403, NotFound 404,
// Unavailable for 408, 429 and 5xx, else FailedPrecondition. The message names the address
// without its query, and the first words of the body.
absl::Status HttpStatusError(const FollowedResponse& response);

// The part of a URL that may be shown: no credentials, no query.
std::string ShownUrl(const std::string& url);

}  // namespace hexad
