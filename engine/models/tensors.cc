#include "engine/models/tensors.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/dequantize.h"

namespace hexad {
namespace {

class Binder {
 public:
  explicit Binder(const GgufFile& file) : file_(file) {}

  const GgufTensor* Take(const std::string& name, std::vector<int64_t> dims) {
    const GgufTensor* tensor = file_.FindTensor(name);
    if (tensor == nullptr) {
      Fail(absl::StrFormat("%s: no tensor \"%s\"; the file does not hold the whole model",
                           file_.path(), name));
      return nullptr;
    }
    std::vector<int64_t> found = tensor->dims;
    while (found.size() > dims.size() && found.back() == 1) found.pop_back();
    if (found != dims) {
      Fail(absl::StrFormat("%s: tensor \"%s\" has shape {%s} and not {%s}; convert the model again",
                           file_.path(), name, absl::StrJoin(tensor->dims, ", "),
                           absl::StrJoin(dims, ", ")));
    } else if (!CanDequantize(tensor->type)) {
      Fail(absl::StrFormat("%s: tensor \"%s\" is %s, which has no kernel here", file_.path(), name,
                           Info(tensor->type).name));
    }
    used_.insert(tensor);
    return tensor;
  }

  absl::Status Finish() {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (used_.contains(&tensor)) continue;
      Fail(absl::StrFormat(
          "%s: tensor \"%s\" has no place in this model: hexad would ignore it and answer wrongly",
          file_.path(), tensor.name));
    }
    return status_;
  }

 private:
  void Fail(const std::string& message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  }

  const GgufFile& file_;
  absl::flat_hash_set<const GgufTensor*> used_;
  absl::Status status_;
};

LayerTensors BindLayer(Binder& binder, const TransformerSpec& spec, int32_t index) {
  const int64_t hidden = spec.hidden_size;
  const int64_t ffn = spec.ffn_size;
  const int64_t q_size = int64_t{spec.num_heads} * spec.head_dim;
  const int64_t kv_size = int64_t{spec.num_kv_heads} * spec.head_dim;
  const auto take = [&](std::string_view part, std::vector<int64_t> dims) {
    return binder.Take(absl::StrFormat("blk.%d.%s", index, part), std::move(dims));
  };
  LayerTensors layer;
  layer.attention_norm = take("attn_norm.weight", {hidden});
  layer.query = take("attn_q.weight", {hidden, q_size});
  layer.key = take("attn_k.weight", {hidden, kv_size});
  layer.value = take("attn_v.weight", {hidden, kv_size});
  layer.attention_output = take("attn_output.weight", {q_size, hidden});
  if (spec.qkv_bias) {
    layer.query_bias = take("attn_q.bias", {q_size});
    layer.key_bias = take("attn_k.bias", {kv_size});
    layer.value_bias = take("attn_v.bias", {kv_size});
  }
  if (spec.query_key_norm) {
    layer.query_norm = take("attn_q_norm.weight", {spec.head_dim});
    layer.key_norm = take("attn_k_norm.weight", {spec.head_dim});
  }
  layer.ffn_norm = take("ffn_norm.weight", {hidden});
  layer.ffn_gate = take("ffn_gate.weight", {hidden, ffn});
  layer.ffn_up = take("ffn_up.weight", {hidden, ffn});
  layer.ffn_down = take("ffn_down.weight", {ffn, hidden});
  if (spec.post_norms) {
    layer.post_attention_norm = take("post_attention_norm.weight", {hidden});
    layer.post_ffn_norm = take("post_ffw_norm.weight", {hidden});
  }
  return layer;
}

}  // namespace

absl::StatusOr<ModelTensors> BindTensors(const GgufFile& file, const TransformerSpec& spec) {
  Binder binder(file);
  ModelTensors tensors;
  const int64_t hidden = spec.hidden_size;
  tensors.token_embedding = binder.Take("token_embd.weight", {hidden, spec.vocab_size});
  tensors.output_norm = binder.Take("output_norm.weight", {hidden});
  tensors.head = spec.tied_head ? tensors.token_embedding
                                : binder.Take("output.weight", {hidden, spec.vocab_size});
  for (const AttentionGroup& group : spec.groups) {
    if (!group.rope.uses_factors) continue;
    tensors.rope_factors = binder.Take("rope_freqs.weight", {spec.rope_dim / 2});
  }
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) {
    tensors.layers.push_back(BindLayer(binder, spec, layer));
  }
  const absl::Status status = binder.Finish();
  if (!status.ok()) return status;
  return tensors;
}

}  // namespace hexad
