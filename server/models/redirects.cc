#include "server/models/redirects.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>

#include "server/models/source.h"

namespace hexad {
namespace {

std::string Part(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

// "\"abc\"" and "W/\"abc\"" give abc.
std::string Unquote(std::string_view text) {
  if (text.substr(0, 2) == "W/") text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

void TakeLinked(FollowedResponse& followed) {
  const auto& headers = followed.response.headers;
  if (const auto etag = headers.find("x-linked-etag"); etag != headers.end()) {
    followed.linked_etag = Unquote(etag->second);
  }
  if (const auto size = headers.find("x-linked-size"); size != headers.end()) {
    int64_t value = -1;
    std::from_chars(size->second.data(), size->second.data() + size->second.size(), value);
    followed.linked_size = value;
  }
}

}  // namespace

std::string OriginOf(const std::string& text) {
  std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return "";
  std::string origin = Part(url.get(), CURLUPART_SCHEME, 0) + "://" +
                       Part(url.get(), CURLUPART_HOST, 0) + ":" +
                       Part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::transform(origin.begin(), origin.end(), origin.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return origin;
}

std::string ShownUrl(const std::string& text) {
  std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return "(bad address)";
  for (CURLUPart secret : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY}) {
    curl_url_set(url.get(), secret, nullptr, 0);
  }
  return Part(url.get(), CURLUPART_URL, 0);
}

absl::Status HttpStatusError(const FollowedResponse& followed) {
  const HttpGetResponse& response = followed.response;
  std::string text = ShownUrl(followed.url) + " answered " + std::to_string(response.status);
  std::string body;
  for (char c : response.error_body.substr(0, 200)) {
    body += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
  }
  if (!body.empty()) text += ": " + body;
  switch (response.status) {
    case 401:
      return absl::UnauthenticatedError(text);
    case 403:
      return absl::PermissionDeniedError(text);
    case 404:
    case 410:
      return absl::NotFoundError(text);
    case 408:
    case 429:
      return absl::UnavailableError(text);
    default:
      return response.status >= 500 ? absl::UnavailableError(text)
                                    : absl::FailedPreconditionError(text);
  }
}

absl::StatusOr<FollowedResponse> GetFollowing(const FollowedRequest& request,
                                              const FollowedHandlers& handlers,
                                              const DownloadLimits& limits) {
  const std::string first_origin = OriginOf(request.url);
  FollowedResponse followed;
  followed.url = request.url;
  for (int hop = 0; hop <= limits.max_redirects; ++hop) {
    if (!IsAllowedUrl(followed.url)) {
      return absl::FailedPreconditionError("refused to follow a redirect to " +
                                           ShownUrl(followed.url) + ": not https");
    }
    const bool at_home = OriginOf(followed.url) == first_origin;
    HttpGetRequest get{followed.url, request.headers, limits.connect_timeout_seconds,
                       limits.stall_timeout_seconds};
    if (at_home && !request.token.empty()) {
      get.headers.push_back("Authorization: Bearer " + request.token);
    }
    HttpGetHandlers hop_handlers;
    hop_handlers.on_start = [&](const HttpGetResponse& response) {
      followed.response = response;
      if (at_home) TakeLinked(followed);
      return handlers.on_start ? handlers.on_start(followed) : absl::OkStatus();
    };
    hop_handlers.on_bytes = handlers.on_bytes;
    absl::StatusOr<HttpGetResponse> response = HttpGet(get, hop_handlers);
    if (!response.ok()) return response.status();
    followed.response = *std::move(response);
    if (at_home) TakeLinked(followed);
    const std::string& next = followed.response.redirect_url;
    if (followed.response.status / 100 != 3 || next.empty()) return followed;
    // From the world to this machine, or from TLS to none: never.
    if (first_origin.compare(0, 8, "https://") == 0 && next.compare(0, 8, "https://") != 0) {
      return absl::FailedPreconditionError("refused to follow a redirect from https to " +
                                           ShownUrl(next));
    }
    followed.url = next;
  }
  return absl::FailedPreconditionError(ShownUrl(request.url) + ": more than " +
                                       std::to_string(limits.max_redirects) + " redirects");
}

}  // namespace hexad
