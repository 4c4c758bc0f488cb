#include "engine/models/shape.h"

#include <utility>

namespace hexad {

ModelShape MakeModelShape(const ModelFile& model, int32_t block_tokens, DType kv_type,
                          std::string numerics_id) {
  const TransformerSpec& spec = model.spec;
  ModelShape shape;
  shape.name = spec.name;
  shape.num_layers = spec.num_layers;
  shape.hidden_size = spec.hidden_size;
  shape.num_heads = spec.num_heads;
  shape.num_kv_heads = spec.num_kv_heads;
  shape.head_dim = spec.head_dim;
  shape.vocab_size = spec.vocab_size;
  shape.max_context_tokens = spec.max_context_tokens;
  for (const GgufTensor& tensor : model.gguf->tensors()) {
    // An embedding that is no head is looked up, not read through.
    if (&tensor == model.tensors.token_embedding && &tensor != model.tensors.head) continue;
    int64_t values = 1;
    for (const int64_t dim : tensor.dims) values *= dim;
    shape.active_parameters += values;
    shape.weight_bytes += static_cast<int64_t>(tensor.data.size());
  }
  shape.kv.block_tokens = block_tokens;
  const int64_t layer_bytes =
      2 * RowBytes(kv_type, int64_t{spec.num_kv_heads} * spec.head_dim);  // keys and values
  for (const AttentionGroup& group : spec.groups) {
    KvGroup kv_group;
    kv_group.kind = group.window > 0 ? GroupKind::kWindow : GroupKind::kFull;
    kv_group.window_tokens = group.window;
    kv_group.layers = group.layers;
    kv_group.bytes_per_token = layer_bytes * static_cast<int64_t>(group.layers.size());
    shape.kv.groups.push_back(std::move(kv_group));
  }
  shape.model_digest = model.digest;
  shape.numerics_id = std::move(numerics_id);
  return shape;
}

}  // namespace hexad
