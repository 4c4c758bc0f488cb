#include "server/models/hub.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace hexad {
namespace {

constexpr char kPublicHub[] = "https://huggingface.co";
constexpr size_t kMaxListingBytes = 16 << 20;

std::string Endpoint(const HubAccess& access) {
  std::string endpoint = access.endpoint.empty() ? kPublicHub : access.endpoint;
  while (!endpoint.empty() && endpoint.back() == '/') endpoint.pop_back();
  return endpoint;
}

// Slashes stay: they part the path.
std::string EscapePath(const std::string& path) {
  std::string escaped;
  for (unsigned char c : path) {
    if (std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_' || c == '~') {
      escaped += static_cast<char>(c);
    } else {
      escaped += '%';
      escaped += "0123456789ABCDEF"[c >> 4];
      escaped += "0123456789ABCDEF"[c & 15];
    }
  }
  return escaped;
}

std::string LicenceOf(const simdjson::dom::element& document) {
  std::string_view text;
  if (document["cardData"]["license"].get_string().get(text) == simdjson::SUCCESS &&
      !text.empty()) {
    return std::string(text.substr(0, 200));
  }
  simdjson::dom::array tags;
  if (document["tags"].get_array().get(tags) == simdjson::SUCCESS) {
    for (const auto& tag : tags) {
      if (tag.get_string().get(text) == simdjson::SUCCESS && text.substr(0, 8) == "license:") {
        return std::string(text.substr(8, 200));
      }
    }
  }
  return "not stated";
}

absl::StatusOr<std::string> ChooseFile(const HubSource& source,
                                       const simdjson::dom::element& document) {
  std::vector<std::string> gguf;
  simdjson::dom::array siblings;
  if (document["siblings"].get_array().get(siblings) != simdjson::SUCCESS) {
    return absl::DataLossError("the hub's answer about " + source.repository + " lists no files");
  }
  for (const auto& sibling : siblings) {
    std::string_view name;
    if (sibling["rfilename"].get_string().get(name) != simdjson::SUCCESS) continue;
    if (!source.file.empty() && name == source.file) return source.file;
    if (name.size() > 5 && name.substr(name.size() - 5) == ".gguf") gguf.emplace_back(name);
  }
  if (source.file.empty() && gguf.size() == 1) return gguf[0];
  std::string listed;
  for (size_t i = 0; i < gguf.size() && i < 30; ++i) listed += "\n  " + gguf[i];
  if (!source.file.empty()) {
    return absl::NotFoundError(source.repository + " has no file \"" + source.file + "\"" +
                               (listed.empty() ? "" : "; its .gguf files:" + listed));
  }
  if (gguf.empty()) {
    return absl::NotFoundError(source.repository + " holds no .gguf file; hexad loads GGUF");
  }
  return absl::InvalidArgumentError(
      source.repository + " holds several .gguf files: name one, as in hf:" + source.repository +
      ":" + gguf[0] + listed);
}

}  // namespace

absl::Status ExplainHubError(const absl::Status& status, const HubSource& source,
                             const HubAccess& access) {
  const std::string message(status.message());
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    const std::string remedy =
        access.token.empty()
            ? "; it is private, gated or misspelt: set HF_TOKEN to a token that may read it"
            : "; the token in HF_TOKEN may not read it: accept the model's terms on its page, or "
              "use another token";
    return absl::Status(status.code(), source.repository + ": " + message + remedy);
  }
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(source.repository + ": " + message + "; is the name right?");
  }
  return status;
}

absl::StatusOr<HubFile> FindHubFile(const HubSource& source, const HubAccess& access,
                                    const DownloadLimits& limits) {
  const std::string endpoint = Endpoint(access);
  if (!IsAllowedUrl(endpoint)) {
    return absl::InvalidArgumentError("HF_ENDPOINT \"" + endpoint +
                                      "\" is not an https:// address (http:// is for this machine "
                                      "only)");
  }
  std::string revision;  // a revision may hold slashes, which are no path here
  for (char c : source.revision) revision += c == '/' ? "%2F" : std::string(1, c);
  const std::string listing_url = endpoint + "/api/models/" + EscapePath(source.repository) +
                                  (source.revision == "main" ? "" : "/revision/" + revision);
  absl::StatusOr<std::string> listing =
      FetchText(listing_url, access.token, kMaxListingBytes, limits);
  if (!listing.ok()) return ExplainHubError(listing.status(), source, access);
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (parser.parse(*listing).get(document) != simdjson::SUCCESS) {
    return absl::DataLossError("the hub's answer about " + source.repository + " is not JSON");
  }
  absl::StatusOr<std::string> file = ChooseFile(source, document);
  if (!file.ok()) return file.status();
  return HubFile{endpoint + "/" + EscapePath(source.repository) + "/resolve/" + revision + "/" +
                     EscapePath(*file),
                 *file, LicenceOf(document)};
}

}  // namespace hexad
