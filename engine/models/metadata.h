#pragma once

// What the families' files share when they read a TransformerSpec from GGUF metadata.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/models/transformer_spec.h"
#include "engine/weights/gguf.h"

namespace hexad {

// Reads "ARCHITECTURE.key" entries with bounds. The first error sticks and is reported by status(),
// so that a family's file reads as a list.
class MetadataReader final {
 public:
  MetadataReader(const GgufFile& file, std::string architecture)
      : file_(file), architecture_(std::move(architecture)) {}

  int32_t Int(std::string_view key, int64_t least, int64_t most);
  int32_t IntOr(std::string_view key, int64_t least, int64_t most, int32_t otherwise);
  // Finite and positive.
  double Positive(std::string_view key);
  double PositiveOr(std::string_view key, double otherwise);
  std::string StringOr(std::string_view key, std::string_view otherwise);

  void Fail(absl::Status status);
  const absl::Status& status() const { return status_; }
  const GgufFile& file() const { return file_; }

 private:
  std::string Full(std::string_view key) const;

  const GgufFile& file_;
  std::string architecture_;
  absl::Status status_;
};

// Sizes, heads, norms, context and the attention scale 1/sqrt(head_dim): the same in every family.
void ReadCommon(MetadataReader& reader, TransformerSpec& spec);

// RoPE base, linear scaling and frequency factors. Other scalings (YaRN) are refused.
RopeSpec ReadRope(MetadataReader& reader, RopeKind kind);

// All layers in one group with full attention.
void OneFullGroup(const RopeSpec& rope, TransformerSpec& spec);

}  // namespace hexad
