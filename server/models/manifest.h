#pragma once

// What the cache knows of a pulled model: one "key value" a line, read back as written.

#include <string>

#include "absl/status/statusor.h"
#include "server/models/store.h"

namespace hexad {

inline constexpr char kManifestName[] = "model.manifest";

std::string WriteManifest(const StoredModel& model);
// The path becomes `folder` and the file's name; a name with folders in it is an error.
absl::StatusOr<StoredModel> ParseManifest(const std::string& text, const std::string& folder);

}  // namespace hexad
