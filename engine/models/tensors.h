#pragma once

// The tensors of a model by role, found by their GGUF names and checked against the description.

#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/transformer_spec.h"
#include "engine/weights/gguf.h"

namespace hexad {

// Optional ones are null when the description has none.
struct LayerTensors {
  const GgufTensor* attention_norm = nullptr;  // [hidden]
  const GgufTensor* query = nullptr;           // {hidden, heads * head_dim}, GGUF order: in, out
  const GgufTensor* key = nullptr;             // {hidden, kv_heads * head_dim}
  const GgufTensor* value = nullptr;
  const GgufTensor* attention_output = nullptr;  // {heads * head_dim, hidden}
  const GgufTensor* query_bias = nullptr;
  const GgufTensor* key_bias = nullptr;
  const GgufTensor* value_bias = nullptr;
  const GgufTensor* query_norm = nullptr;  // [head_dim]
  const GgufTensor* key_norm = nullptr;
  const GgufTensor* post_attention_norm = nullptr;  // [hidden]
  const GgufTensor* ffn_norm = nullptr;             // [hidden]
  const GgufTensor* ffn_gate = nullptr;             // {hidden, ffn}
  const GgufTensor* ffn_up = nullptr;
  const GgufTensor* ffn_down = nullptr;       // {ffn, hidden}
  const GgufTensor* post_ffn_norm = nullptr;  // [hidden]
};

struct ModelTensors {
  const GgufTensor* token_embedding = nullptr;  // {hidden, vocabulary}
  const GgufTensor* output_norm = nullptr;
  const GgufTensor* head = nullptr;          // the embedding when tied
  const GgufTensor* rope_factors = nullptr;  // [rope_dim / 2]
  std::vector<LayerTensors> layers;
};

// A missing tensor, a wrong shape and a tensor that nothing would use (a bias that the description
// does not know: answers would be silently wrong) are errors that name it. The result points into
// `file`.
absl::StatusOr<ModelTensors> BindTensors(const GgufFile& file, const TransformerSpec& spec);

}  // namespace hexad
