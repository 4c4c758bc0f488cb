#include <cmath>

#include "engine/models/families/families.h"

namespace hexad {
namespace {

constexpr int32_t kPattern = 6;             // the sixth of every six layers sees everything
constexpr double kLocalRopeBase = 10000.0;  // unscaled, whatever the global layers use
constexpr int32_t kLayersOf27B = 62;        // scales by the model's width, not the head's

}  // namespace

void FillGemma3(MetadataReader& reader, TransformerSpec& spec) {
  ReadCommon(reader, spec);
  spec.query_key_norm = true;
  spec.post_norms = true;
  spec.activation = Activation::kGelu;
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden_size));
  // norm_weight_offset stays 0: the converter to GGUF adds the 1 to every norm's weight.
  if (spec.num_layers == kLayersOf27B) {
    const int32_t width = spec.hidden_size / spec.num_heads;
    spec.attention_scale = 1.0f / std::sqrt(static_cast<float>(width));
  }

  AttentionGroup global;
  global.rope = ReadRope(reader, RopeKind::kHalves);
  if (!reader.file().metadata().contains("gemma3.rope.freq_base")) global.rope.base = 1e6;
  AttentionGroup local;
  local.rope.kind = RopeKind::kHalves;
  local.rope.base = reader.PositiveOr("rope.freq_base_swa", kLocalRopeBase);
  local.window = reader.Int("attention.sliding_window", 1, 1 << 26);
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) {
    ((layer + 1) % kPattern == 0 ? global : local).layers.push_back(layer);
  }
  if (!global.layers.empty()) spec.groups.push_back(global);
  if (!local.layers.empty()) spec.groups.push_back(local);
}

}  // namespace hexad
