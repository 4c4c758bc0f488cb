#include "engine/models/families/families.h"

namespace hexad {

void FillLlama(MetadataReader& reader, TransformerSpec& spec) {
  ReadCommon(reader, spec);
  OneFullGroup(ReadRope(reader, RopeKind::kInterleaved), spec);
}

}  // namespace hexad
