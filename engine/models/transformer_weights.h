#pragma once

// A model's weights as one kind of arithmetic wants them. Ops::Matrix is what its products take,
// Ops::Load makes one from a tensor of the file; vectors are fp32.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/models/model_file.h"
#include "kernels/dequantize.h"
#include "kernels/elementwise.h"
#include "kvcache/core/types.h"

namespace hexad {

template <typename Matrix>
struct LayerWeights {
  std::vector<float> attention_norm, query_bias, key_bias, value_bias, query_norm, key_norm,
      post_attention_norm, ffn_norm, post_ffn_norm;  // empty when the model has none
  Matrix query, key, value, attention_output, ffn_gate, ffn_up, ffn_down;
};

template <typename Matrix>
struct TransformerWeights {
  std::vector<float> output_norm;
  Matrix head;
  std::vector<std::vector<float>> rope_frequencies;  // of each attention group
  std::vector<LayerWeights<Matrix>> layers;
};

// The rows of an embedding, from the file. x: [tokens, dims[0]].
inline void EmbedFromFile(const GgufTensor& embedding, std::span<const TokenId> tokens, float* x) {
  const int64_t dim = embedding.dims[0];
  const int64_t row_bytes = RowBytes(embedding.type, dim);
  for (const TokenId token : tokens) {
    DequantizeRow(embedding.type, embedding.data.data() + static_cast<int64_t>(token) * row_bytes,
                  dim, x);
    x += dim;
  }
}

inline std::vector<float> LoadVector(const GgufTensor* tensor) {
  if (tensor == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(tensor->dims[0]));
  DequantizeRow(tensor->type, tensor->data.data(), tensor->dims[0], values.data());
  return values;
}

template <typename Ops>
TransformerWeights<typename Ops::Matrix> LoadWeights(const ModelFile& model, Ops& ops) {
  TransformerWeights<typename Ops::Matrix> weights;
  const TransformerSpec& spec = model.spec;
  weights.output_norm = LoadVector(model.tensors.output_norm);
  weights.head = ops.Load(*model.tensors.head);
  const std::vector<float> factors = LoadVector(model.tensors.rope_factors);
  for (const AttentionGroup& group : spec.groups) {
    weights.rope_frequencies.push_back(
        RopeFrequencies(spec.rope_dim, group.rope.base, group.rope.frequency_scale,
                        group.rope.uses_factors ? factors.data() : nullptr));
  }
  for (const LayerTensors& tensors : model.tensors.layers) {
    LayerWeights<typename Ops::Matrix> layer;
    layer.attention_norm = LoadVector(tensors.attention_norm);
    layer.query_bias = LoadVector(tensors.query_bias);
    layer.key_bias = LoadVector(tensors.key_bias);
    layer.value_bias = LoadVector(tensors.value_bias);
    layer.query_norm = LoadVector(tensors.query_norm);
    layer.key_norm = LoadVector(tensors.key_norm);
    layer.post_attention_norm = LoadVector(tensors.post_attention_norm);
    layer.ffn_norm = LoadVector(tensors.ffn_norm);
    layer.post_ffn_norm = LoadVector(tensors.post_ffn_norm);
    layer.query = ops.Load(*tensors.query);
    layer.key = ops.Load(*tensors.key);
    layer.value = ops.Load(*tensors.value);
    layer.attention_output = ops.Load(*tensors.attention_output);
    layer.ffn_gate = ops.Load(*tensors.ffn_gate);
    layer.ffn_up = ops.Load(*tensors.ffn_up);
    layer.ffn_down = ops.Load(*tensors.ffn_down);
    weights.layers.push_back(std::move(layer));
  }
  return weights;
}

}  // namespace hexad
