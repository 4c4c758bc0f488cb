#include "server/client/api.h"

#include "server/client/chat_stream.h"
#include "server/client/http_client.h"

namespace hexad {

std::string ApiUrl(const ApiServer& server, std::string_view path) {
  std::string base = server.url;
  while (!base.empty() && base.back() == '/') base.pop_back();
  if (base.find("://") == std::string::npos) base = "http://" + base;
  if (base.size() < 3 || base.compare(base.size() - 3, 3, "/v1") != 0) base += "/v1";
  return base + std::string(path);
}

std::vector<std::string> ApiHeaders(const ApiServer& server) {
  if (server.api_key.empty()) return {};
  return {"Authorization: Bearer " + server.api_key};
}

std::string NoServerMessage(const ApiServer& server, std::string_view why) {
  return "no server answers at " + server.url + " (" + std::string(why) +
         "). Start it with: make serve";
}

absl::StatusOr<std::string> AskForModel(const ApiServer& server) {
  HttpCall call;
  call.url = ApiUrl(server, "/models");
  call.headers = ApiHeaders(server);
  call.timeout_seconds = 30;
  const FetchedBody fetched = Fetch(std::move(call), size_t{4} << 20);
  if (fetched.outcome.end != TransferEnd::kComplete) {
    return absl::UnavailableError(NoServerMessage(server, fetched.outcome.detail));
  }
  if (fetched.outcome.status == 401 || fetched.outcome.status == 403) {
    return absl::UnauthenticatedError("the server wants a key: --api-key KEY (" +
                                      ErrorMessageOf(fetched.body) + ")");
  }
  if (fetched.outcome.status != 200) {
    return absl::FailedPreconditionError(ApiUrl(server, "/models") + " answered " +
                                         std::to_string(fetched.outcome.status) + ": " +
                                         ErrorMessageOf(fetched.body));
  }
  return FirstModelOf(fetched.body);
}

}  // namespace hexad
