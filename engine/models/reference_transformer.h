#pragma once

// The forward pass in kernels/reference: plain loops, fp32 weights and KV, one thread. What the
// fast executors are compared with.

#include <memory>

#include "absl/status/statusor.h"
#include "engine/models/kv_storage.h"
#include "engine/models/model.h"
#include "engine/models/model_file.h"

namespace hexad {

absl::StatusOr<std::unique_ptr<Model>> MakeReferenceTransformer(
    std::shared_ptr<const ModelFile> file, const KvStorageOptions& kv);

}  // namespace hexad
