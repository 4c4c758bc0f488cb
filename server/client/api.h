#pragma once

// Addresses and headers of an OpenAI-compatible server.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hexad {

struct ApiServer {
  std::string url;      // "http://host:port", with or without /v1 at its end
  std::string api_key;  // empty: none
};

// The address of a path below /v1, such as "/chat/completions".
std::string ApiUrl(const ApiServer& server, std::string_view path);
std::vector<std::string> ApiHeaders(const ApiServer& server);

// The server's first model. Unavailable when nothing answers (the message says how to start a
// server); else what the server said.
absl::StatusOr<std::string> AskForModel(const ApiServer& server);

// "no server answers at URL (why). Start it with: make serve"
std::string NoServerMessage(const ApiServer& server, std::string_view why);

}  // namespace hexad
