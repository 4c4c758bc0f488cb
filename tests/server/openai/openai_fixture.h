#pragma once

// The OpenAI routes over a FakeServing on a free port, and a reader of event streams.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/http_server.h"
#include "server/openai/openai_routes.h"
#include "tests/server/http/raw_client.h"
#include "tests/server/openai/fake_serving.h"

namespace hexad {

struct OpenAiFixture {
  FakeServing serving;
  std::unique_ptr<HttpServer> server;

  explicit OpenAiFixture(OpenAiOptions options = {}) {
    if (!options.authenticate) {
      options.authenticate = [](std::string_view header) -> absl::StatusOr<std::string> {
        if (header == "Bearer good") return std::string("tenant-a");
        return absl::UnauthenticatedError("Incorrect API key provided.");
      };
    }
    if (!options.metrics) options.metrics = [] { return std::string("hexad_up 1\n"); };
    options.version = "1.2.3";
    options.system_fingerprint = "fp_test";
    options.now_unix = [] { return int64_t{1727346168}; };
    Router router;
    AddOpenAiRoutes(&serving, std::move(options), &router);
    HttpServerOptions http;
    http.port = 0;
    server = *HttpServer::Start(http, std::move(router));
  }
  ~OpenAiFixture() {
    server->Stop(absl::ZeroDuration());
    serving.Join();
  }

  RawClient Client() { return RawClient(server->port()); }
  RawResponse Get(std::string_view path,
                  std::string_view headers = "Authorization: Bearer good\r\n") {
    RawClient client = Client();
    client.Get(path, headers);
    return client.ReadResponse();
  }
  RawResponse Post(std::string_view path, std::string_view body,
                   std::string_view headers = "Authorization: Bearer good\r\n") {
    RawClient client = Client();
    client.Post(path, body, headers);
    return client.ReadResponse();
  }
  RawResponse Chat(const std::string& members) {
    return Post("/v1/chat/completions",
                R"({"model":"small","messages":[{"role":"user","content":"hi"}])" +
                    (members.empty() ? "" : "," + members) + "}");
  }
};

// The payloads of the data lines; anything but data lines, comments and empty lines fails.
inline std::vector<std::string> ReadEvents(std::string_view body) {
  std::vector<std::string> events;
  while (!body.empty()) {
    const size_t end = body.find("\n\n");
    const std::string_view event = body.substr(0, end);
    if (event.starts_with("data: ") && event.find('\n') == std::string_view::npos) {
      events.emplace_back(event.substr(6));
    } else if (!event.starts_with(":")) {
      events.emplace_back("BAD EVENT " + std::string(event));
    }
    if (end == std::string_view::npos) break;
    body.remove_prefix(end + 2);
  }
  return events;
}

inline TextDelta Text(std::string text) { return {.text = std::move(text)}; }

}  // namespace hexad
