#pragma once

// Downloads one file over http(s): redirects followed by hand, so that a token never reaches
// another host; interrupted transfers resumed with Range and If-Range; what arrives is checked
// before it gets its final name.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/models/progress.h"

namespace hexad {

struct DownloadLimits {
  int64_t max_bytes = int64_t{256} << 30;  // of one file
  int max_redirects = 8;
  int max_attempts = 6;
  int connect_timeout_seconds = 20;
  int stall_timeout_seconds = 60;
  std::chrono::milliseconds first_retry_delay{500};  // doubles; at most 30 s
};

struct DownloadRequest {
  std::string url;
  std::string token;        // bearer token for the origin of `url`; empty: none
  std::string destination;  // final path; the transfer goes to destination + ".part"
  std::string label;        // for the progress bar
  std::string sha256;       // empty: what the hub says in X-Linked-Etag, else unchecked
  int64_t size = -1;        // -1: not pinned
};

struct DownloadResult {
  int64_t size = 0;
  std::string sha256;     // of what was written
  bool verified = false;  // it was compared with a sum from the lock or the hub
};

// Leaves `destination` complete and synced, or not at all. On failures that another call may get
// past, the part file stays for it; after a wrong sum, a wrong size or a full disk it is deleted.
absl::StatusOr<DownloadResult> Download(const DownloadRequest& request,
                                        const DownloadLimits& limits, Progress& progress);

// A small document (at most max_bytes) with the same redirect and token rules; not retried for
// answers, only for connections.
absl::StatusOr<std::string> FetchText(const std::string& url, const std::string& token,
                                      size_t max_bytes, const DownloadLimits& limits);

}  // namespace hexad
