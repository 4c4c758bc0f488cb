#pragma once

// The families of models. A new one is a file beside this one, a declaration here, a line in
// families.cc and a golden in tests/engine/models.

#include "engine/models/metadata.h"
#include "engine/models/transformer_spec.h"

namespace hexad {

// Llama 2 and 3, SmolLM2, TinyLlama and what else GGUF calls "llama". The converter permutes q and
// k rows so that RoPE turns neighbouring pairs.
void FillLlama(MetadataReader& reader, TransformerSpec& spec);
// Qwen 2 and 2.5: Llama with biases on q, k, v and unpermuted weights. arXiv:2407.10671.
void FillQwen2(MetadataReader& reader, TransformerSpec& spec);
// Gemma 3, text: five layers with a sliding window to one with full attention. arXiv:2503.19786.
void FillGemma3(MetadataReader& reader, TransformerSpec& spec);

// Dispatches on general.architecture; the error for an unknown one lists what there is.
absl::StatusOr<TransformerSpec> ReadSpec(const GgufFile& file);

}  // namespace hexad
