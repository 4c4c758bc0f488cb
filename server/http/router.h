#pragma once

// Which handler answers which method and path. Filled before the server starts, then read only.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"
#include "server/http/response_writer.h"

namespace hexad {

// Runs on an I/O thread and must not block.
using HttpHandler = std::function<void(HttpRequest, ResponseWriter)>;

struct HttpRoute {
  std::string method;
  // A path, or one that ends in {id}, which matches all that is left, slashes included, and at
  // least one character: model ids hold slashes.
  std::string pattern;
  HttpHandler handler;
  // Bodies must say application/json. That also keeps web pages from posting to a daemon on
  // loopback, since browsers ask before they send this type across origins.
  bool json_body = false;
};

class Router final {
 public:
  struct Match {
    const HttpRoute* route = nullptr;
    std::string parameter;
    std::string allow;  // without a route: the methods this path has; empty: no such path
  };

  void Add(HttpRoute route);

  // HEAD finds GET routes.
  Match Find(std::string_view method, std::string_view path) const;

 private:
  std::vector<HttpRoute> routes_;
};

// %41 becomes A; a % that starts no escape stays.
std::string PercentDecode(std::string_view text);

}  // namespace hexad
