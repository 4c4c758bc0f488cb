#include "engine/models/metadata.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

// Far above any model, and small enough that products of two stay inside 64 bits.
constexpr int64_t kMostLayers = 1024;
constexpr int64_t kMostHeads = 4096;
constexpr int64_t kMostSize = 1 << 22;
constexpr int64_t kMostContext = 1 << 26;
constexpr int64_t kMostHeadDim = 512;  // of the attention kernels

}  // namespace

std::string MetadataReader::Full(std::string_view key) const {
  return absl::StrFormat("%s.%s", architecture_, key);
}

void MetadataReader::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

int32_t MetadataReader::Int(std::string_view key, int64_t least, int64_t most) {
  const std::string full = Full(key);
  const absl::StatusOr<int64_t> value = file_.Int(full);
  if (!value.ok()) {
    Fail(value.status());
    return static_cast<int32_t>(least);
  }
  if (*value < least || *value > most) {
    Fail(absl::InvalidArgumentError(
        absl::StrFormat("%s: metadata \"%s\" is %d: hexad runs models with %d to %d", file_.path(),
                        full, *value, least, most)));
    return static_cast<int32_t>(least);
  }
  return static_cast<int32_t>(*value);
}

int32_t MetadataReader::IntOr(std::string_view key, int64_t least, int64_t most,
                              int32_t otherwise) {
  if (!file_.metadata().contains(Full(key))) return otherwise;
  return Int(key, least, most);
}

double MetadataReader::Positive(std::string_view key) {
  const std::string full = Full(key);
  const absl::StatusOr<double> value = file_.Float(full);
  if (!value.ok()) {
    Fail(value.status());
    return 1.0;
  }
  if (!std::isfinite(*value) || *value <= 0) {
    Fail(absl::InvalidArgumentError(absl::StrFormat(
        "%s: metadata \"%s\" is %g: it must be finite and positive", file_.path(), full, *value)));
    return 1.0;
  }
  return *value;
}

double MetadataReader::PositiveOr(std::string_view key, double otherwise) {
  if (!file_.metadata().contains(Full(key))) return otherwise;
  return Positive(key);
}

std::string MetadataReader::StringOr(std::string_view key, std::string_view otherwise) {
  const std::string full = Full(key);
  if (!file_.metadata().contains(full)) return std::string(otherwise);
  const absl::StatusOr<std::string> value = file_.String(full);
  if (!value.ok()) {
    Fail(value.status());
    return std::string(otherwise);
  }
  return *value;
}

void ReadCommon(MetadataReader& reader, TransformerSpec& spec) {
  const absl::StatusOr<std::string> name = reader.file().String("general.name");
  spec.name = name.ok() ? *name : spec.architecture;
  spec.num_layers = reader.Int("block_count", 1, kMostLayers);
  spec.hidden_size = reader.Int("embedding_length", 1, kMostSize);
  spec.ffn_size = reader.Int("feed_forward_length", 1, kMostSize);
  spec.max_context_tokens = reader.Int("context_length", 1, kMostContext);
  spec.num_heads = reader.Int("attention.head_count", 1, kMostHeads);
  spec.num_kv_heads = reader.IntOr("attention.head_count_kv", 1, kMostHeads, spec.num_heads);
  spec.head_dim =
      reader.IntOr("attention.key_length", 1, kMostHeadDim, spec.hidden_size / spec.num_heads);
  const int32_t value_dim = reader.IntOr("attention.value_length", 1, kMostHeadDim, spec.head_dim);
  spec.rope_dim = reader.IntOr("rope.dimension_count", 2, spec.head_dim, spec.head_dim);
  spec.norm_epsilon = static_cast<float>(reader.Positive("attention.layer_norm_rms_epsilon"));
  spec.attention_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));

  const std::string& path = reader.file().path();
  if (spec.head_dim > kMostHeadDim || spec.head_dim % 8 != 0 || value_dim != spec.head_dim ||
      spec.rope_dim % 2 != 0) {
    reader.Fail(absl::UnimplementedError(absl::StrFormat(
        "%s: heads of %d keys, %d values and %d rotated: hexad runs equal keys and values, a "
        "multiple of 8 up to %d, and an even number rotated",
        path, spec.head_dim, value_dim, spec.rope_dim, kMostHeadDim)));
  }
  if (spec.num_heads % spec.num_kv_heads != 0) {
    reader.Fail(absl::InvalidArgumentError(
        absl::StrFormat("%s: %d attention heads are no multiple of %d KV heads", path,
                        spec.num_heads, spec.num_kv_heads)));
  }
  if (reader.IntOr("expert_count", 0, 1 << 16, 0) > 0) {
    reader.Fail(absl::UnimplementedError(
        absl::StrFormat("%s: a mixture-of-experts model; hexad runs dense models", path)));
  }
  if (reader.file().metadata().contains("split.count")) {
    const absl::StatusOr<int64_t> parts = reader.file().Int("split.count");
    if (!parts.ok() || *parts > 1) {
      reader.Fail(absl::UnimplementedError(absl::StrFormat(
          "%s: one part of a split model; merge the parts into one file first", path)));
    }
  }
}

RopeSpec ReadRope(MetadataReader& reader, RopeKind kind) {
  RopeSpec rope;
  rope.kind = kind;
  rope.base = reader.PositiveOr("rope.freq_base", 10000.0);
  const std::string scaling = reader.StringOr("rope.scaling.type", "none");
  if (scaling == "linear") {
    rope.frequency_scale = 1.0 / reader.PositiveOr("rope.scaling.factor", 1.0);
  } else if (scaling != "none") {
    reader.Fail(absl::UnimplementedError(absl::StrFormat(
        "%s: RoPE scaling \"%s\": hexad runs none and linear", reader.file().path(), scaling)));
  } else {
    rope.frequency_scale = 1.0 / reader.PositiveOr("rope.scale_linear", 1.0);
  }
  rope.uses_factors = reader.file().FindTensor("rope_freqs.weight") != nullptr;
  return rope;
}

void OneFullGroup(const RopeSpec& rope, TransformerSpec& spec) {
  AttentionGroup group;
  group.rope = rope;
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) group.layers.push_back(layer);
  spec.groups = {group};
}

}  // namespace hexad
