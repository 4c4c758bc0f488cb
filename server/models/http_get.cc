#include "server/models/http_get.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <mutex>
#include <string_view>

namespace hexad {
namespace {

constexpr size_t kMaxHeaders = 200;
constexpr size_t kErrorBodyLimit = 2048;

struct Transfer {
  CURL* curl = nullptr;
  const HttpGetHandlers* handlers = nullptr;
  HttpGetResponse response;
  absl::Status status;

  bool Start() {
    if (handlers->on_start) status = handlers->on_start(response);
    return status.ok();
  }
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

size_t OnHeader(char* bytes, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(bytes, count);
  if (line.substr(0, 5) == "HTTP/") {  // a 1xx before, or the answer itself
    transfer.response.headers.clear();
    return count;
  }
  if (line == "\r\n" || line == "\n") {  // the head is whole: a refusal need not wait for a body
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &transfer.response.status);
    return transfer.response.status / 100 != 2 || transfer.Start() ? count : 0;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || transfer.response.headers.size() >= kMaxHeaders) {
    return count;
  }
  std::string name(Trim(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  transfer.response.headers[name] = Trim(line.substr(colon + 1));
  return count;
}

size_t OnBody(char* bytes, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.response.status / 100 != 2) {
    std::string& body = transfer.response.error_body;
    body.append(bytes, std::min(count, kErrorBodyLimit - body.size()));
    // A redirect's body, or the rest of a long error page, is nobody's business.
    return body.size() < kErrorBodyLimit ? count : 0;
  }
  if (transfer.handlers->on_bytes) {
    transfer.status = transfer.handlers->on_bytes(std::span<const char>(bytes, count));
  }
  return transfer.status.ok() ? count : 0;
}

bool MayPass(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_OUT_OF_MEMORY:
      return false;
    default:
      return true;
  }
}

bool IsLoopback(const std::string& url) {
  for (const char* prefix : {"http://127.", "http://localhost", "http://[::1]"}) {
    if (url.compare(0, std::char_traits<char>::length(prefix), prefix) == 0) return true;
  }
  return false;
}

}  // namespace

int64_t HttpGetResponse::ContentLength() const {
  const auto it = headers.find("content-length");
  if (it == headers.end()) return -1;
  int64_t length = -1;
  const std::string& text = it->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  return error == std::errc() && end == text.data() + text.size() && length >= 0 ? length : -1;
}

absl::StatusOr<HttpGetResponse> HttpGet(const HttpGetRequest& request,
                                        const HttpGetHandlers& handlers) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (curl == nullptr) return absl::InternalError("libcurl cannot start");
  Transfer transfer;
  transfer.curl = curl.get();
  transfer.handlers = &handlers;
  curl_slist* list = nullptr;
  for (const std::string& header : request.headers) list = curl_slist_append(list, header.c_str());
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);
  char error_text[CURL_ERROR_SIZE] = "";

  CURL* c = curl.get();
  curl_easy_setopt(c, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(c, CURLOPT_USERAGENT, "hexad");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_timeout_seconds));
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout_seconds));
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error_text);
  // A proxy is for the world, not for this machine.
  if (IsLoopback(request.url)) curl_easy_setopt(c, CURLOPT_PROXY, "");

  const CURLcode code = curl_easy_perform(c);
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &transfer.response.status);
  if (!transfer.status.ok()) return transfer.status;
  const bool whole_enough = transfer.response.status != 0 && transfer.response.status / 100 != 2 &&
                            code == CURLE_WRITE_ERROR;
  if (code != CURLE_OK && !whole_enough) {
    const std::string why = error_text[0] != 0 ? error_text : curl_easy_strerror(code);
    return MayPass(code) ? absl::UnavailableError(why) : absl::FailedPreconditionError(why);
  }
  char* redirect = nullptr;
  curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr) transfer.response.redirect_url = redirect;
  return std::move(transfer.response);
}

}  // namespace hexad
