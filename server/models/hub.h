#pragma once

// A model hub that speaks the Hugging Face protocol: what a repository holds, and the address of
// one file in it.

#include <string>

#include "absl/status/statusor.h"
#include "server/models/download.h"
#include "server/models/source.h"

namespace hexad {

struct HubAccess {
  std::string endpoint;  // HF_ENDPOINT; empty: the public hub
  std::string token;     // HF_TOKEN; sent to the endpoint's own origin only
};

struct HubFile {
  std::string url;
  std::string file;     // path inside the repository
  std::string licence;  // as the repository says; "not stated"
};

// Asks the hub about the repository; with no file named, its only .gguf is taken and several are
// listed in the error. Unauthenticated and PermissionDenied say how to get access.
absl::StatusOr<HubFile> FindHubFile(const HubSource& source, const HubAccess& access,
                                    const DownloadLimits& limits);

// The same remedies for an error met while fetching the file itself.
absl::Status ExplainHubError(const absl::Status& status, const HubSource& source,
                             const HubAccess& access);

}  // namespace hexad
