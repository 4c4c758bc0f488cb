#include "engine/models/families/families.h"

namespace hexad {

void FillQwen2(MetadataReader& reader, TransformerSpec& spec) {
  ReadCommon(reader, spec);
  spec.qkv_bias = true;
  OneFullGroup(ReadRope(reader, RopeKind::kHalves), spec);
}

}  // namespace hexad
