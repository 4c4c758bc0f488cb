#include "server/http/wire.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "server/status.h"

namespace hexad {
namespace {

void AppendHeader(std::string_view name, std::string_view value, std::string* out) {
  out->append(name);
  out->append(": ");
  for (const char c : value) {
    if (c != '\r' && c != '\n' && c != '\0') out->push_back(c);
  }
  out->append("\r\n");
}

}  // namespace

HttpResponse ErrorResponse(const HttpError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = ErrorBody(error);
  if (error.retry_after_seconds > 0) {
    response.headers.emplace_back("retry-after", std::to_string(error.retry_after_seconds));
  }
  return response;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::string FormatHead(const ResponseHead& head, absl::Time now) {
  std::string out = absl::StrFormat("HTTP/1.1 %d %s\r\n", head.status, ReasonPhrase(head.status));
  AppendHeader("date", absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()),
               &out);
  if (!head.content_type.empty()) AppendHeader("content-type", head.content_type, &out);
  switch (head.framing) {
    case BodyFraming::kLength:
      if (head.status != 204) AppendHeader("content-length", std::to_string(head.length), &out);
      break;
    case BodyFraming::kChunked:
      AppendHeader("transfer-encoding", "chunked", &out);
      break;
    case BodyFraming::kUntilClose:
      break;
  }
  AppendHeader("connection", head.keep_alive ? "keep-alive" : "close", &out);
  if (!head.request_id.empty()) AppendHeader("x-request-id", head.request_id, &out);
  if (head.headers != nullptr) {
    for (const auto& [name, value] : *head.headers) AppendHeader(name, value, &out);
  }
  out.append("\r\n");
  return out;
}

std::string ChunkHeader(size_t size) { return absl::StrFormat("%x\r\n", size); }

void SplitTarget(std::string_view target, std::string* path, std::string* query) {
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    if (scheme != std::string_view::npos) {
      const size_t slash = target.find('/', scheme + 3);
      target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    }
  }
  target = target.substr(0, target.find('#'));
  const size_t question = target.find('?');
  *path = std::string(target.substr(0, question));
  *query =
      question == std::string_view::npos ? std::string() : std::string(target.substr(question + 1));
}

bool IsSaneRequestId(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool IsJsonContentType(std::string_view value) {
  std::string type(value.substr(0, value.find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  return absl::EqualsIgnoreCase(type, "application/json");
}

}  // namespace hexad
