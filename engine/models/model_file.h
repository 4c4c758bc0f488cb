#pragma once

// A model's file, opened and understood: description, tensors by role, digest. Immutable; several
// executors of one process may share it.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/models/tensors.h"
#include "engine/models/transformer_spec.h"
#include "engine/weights/gguf.h"

namespace hexad {

struct ModelFile {
  std::unique_ptr<GgufFile> gguf;
  TransformerSpec spec;
  ModelTensors tensors;
  std::string digest;  // see ModelDigest
};

absl::StatusOr<std::shared_ptr<const ModelFile>> OpenModelFile(const std::string& path);
// From a parsed file; tests build theirs in memory.
absl::StatusOr<std::shared_ptr<const ModelFile>> MakeModelFile(std::unique_ptr<GgufFile> gguf);

// 64 hex digits: SHA-256 over all metadata (RoPE included), the table of tensors, and samples of
// their data: of each tensor the first and last 4 KiB, and 256 bytes at every stride, where the
// stride is 1 MiB or a 4096th of the tensor, whichever is more. So it costs milliseconds and a few
// thousand page reads on a file of any size. Two files that differ only between the samples would
// share a digest: conversions and quantisations of different weights differ everywhere.
std::string ModelDigest(const GgufFile& file);

}  // namespace hexad
