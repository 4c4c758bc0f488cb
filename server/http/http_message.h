#pragma once

// What a handler is given and what it answers with: plain values, no library's types.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/status.h"

namespace hexad {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;      // as sent, upper case for all known ones
  std::string target;      // as sent
  std::string path;        // the target up to '?', not percent-decoded
  std::string query;       // the target after '?'
  std::string parameter;   // what {id} of the route matched, percent-decoded; may hold slashes
  HttpHeaders headers;     // names in lower case, in the order sent
  std::string body;        // whole, chunks joined
  std::string peer;        // "address:port"
  std::string request_id;  // the client's x-request-id when it is sane, else a random one
  bool keep_alive = false;
  bool is_http_1_0 = false;

  // The first value of a header, by lower-case name; empty when absent.
  std::string_view Header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;  // besides content-type, content-length, date, connection, x-request-id
  std::string body;
};

// How a streamed answer begins, and what the server itself may put into it.
struct StreamHead {
  std::string content_type = "text/event-stream";
  HttpHeaders headers;
  // Written when nothing was for `keep_alive_interval`; ": ping\n\n" keeps proxies from closing a
  // stream whose prefill is long. Empty or zero: never.
  std::string keep_alive_bytes;
  absl::Duration keep_alive_interval = absl::ZeroDuration();
  // Written before the stream is closed because the server stops.
  std::string stop_bytes;
};

// The JSON error body with its status, and Retry-After where the error has one.
HttpResponse ErrorResponse(const HttpError& error);

}  // namespace hexad
