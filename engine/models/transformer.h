#pragma once

// The forward pass, once for every family and for both host executors. `Ops` is the arithmetic:
// CpuOps (packed weights, a thread team) or ReferenceOps (weights as in the file, plain loops).
//
// Each row of every buffer is computed from that row, its position and the KV it sees, so how rows
// are batched or chunked changes no bit. In the last layer only the rows whose logits are wanted go
// on once their keys and values are stored.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/models/kv_storage.h"
#include "engine/models/model.h"
#include "engine/models/model_file.h"
#include "engine/models/transformer_weights.h"
#include "kernels/attention.h"
#include "kernels/dequantize.h"

namespace hexad {

template <typename Ops>
class Transformer final : public Model {
 public:
  using Matrix = typename Ops::Matrix;

  Transformer(std::shared_ptr<const ModelFile> file,
              std::shared_ptr<const TransformerWeights<Matrix>> weights, KvStorage kv, Ops ops)
      : file_(std::move(file)),
        spec_(file_->spec),
        weights_(std::move(weights)),
        kv_(std::move(kv)),
        ops_(std::move(ops)),
        layer_group_(static_cast<size_t>(spec_.num_layers)) {
    for (size_t g = 0; g < spec_.groups.size(); ++g) {
      for (const int32_t layer : spec_.groups[g].layers) layer_group_[layer] = g;
    }
  }

  absl::StatusOr<std::span<const float>> Forward(const ForwardBatch& batch) override {
    SelectRows(batch);
    Embed(batch.tokens);
    for (int32_t layer = 0; layer < spec_.num_layers; ++layer) {
      const bool last = layer + 1 == spec_.num_layers;
      const bool narrow = last && sampled_.rows < all_.rows;
      const Rows& rows = narrow ? sampled_ : all_;
      const LayerWeights<Matrix>& weights = weights_->layers[static_cast<size_t>(layer)];
      KeysAndQueries(layer, weights, narrow);
      if (rows.rows == 0) return std::span<const float>();
      AttendAndAdd(layer, weights, rows);
      FeedForward(weights, rows.rows);
    }
    return Logits();
  }

  void CopyBlock(uint32_t group, uint32_t from, uint32_t to) override {
    kv_.CopyBlock(group, from, to);
  }

 private:
  // What attention and RoPE need to know of a set of rows.
  struct Rows {
    int64_t rows = 0;
    std::vector<int64_t> positions;                  // [rows]
    std::vector<std::vector<KvSequence>> sequences;  // of each group
    std::vector<typename Ops::Rope> rope;            // of each group
  };

  void SelectRows(const ForwardBatch& batch) {
    for (Rows* set : {&all_, &sampled_}) {
      set->rows = 0;
      set->positions.clear();
      set->sequences.assign(spec_.groups.size(), {});
      set->rope.resize(spec_.groups.size());
    }
    sampled_indices_.clear();
    for (const ForwardSequence& sequence : batch.sequences) {
      for (int32_t i = 0; i < sequence.num_tokens; ++i) {
        all_.positions.push_back(sequence.first_position + i);
      }
      AddSequence(sequence, sequence.first_position, sequence.num_tokens, all_);
      const int64_t end = sequence.first_position + sequence.num_tokens;
      for (int32_t i = sequence.num_logits; i > 0; --i) {
        sampled_indices_.push_back(all_.rows - i);
        sampled_.positions.push_back(end - i);
      }
      if (sequence.num_logits > 0) {
        AddSequence(sequence, end - sequence.num_logits, sequence.num_logits, sampled_);
      }
    }
    for (Rows* set : {&all_, &sampled_}) {
      for (size_t g = 0; g < spec_.groups.size(); ++g) {
        ops_.PrepareRope(set->positions, weights_->rope_frequencies[g], set->rope[g]);
      }
    }
  }

  void AddSequence(const ForwardSequence& sequence, int64_t first, int32_t rows, Rows& set) {
    set.rows += rows;
    for (size_t g = 0; g < spec_.groups.size(); ++g) {
      set.sequences[g].push_back({sequence.tables[g].data(), first, rows});
    }
  }

  void Embed(std::span<const TokenId> tokens) {
    const GgufTensor& embedding = *file_->tensors.token_embedding;
    const int64_t dim = spec_.hidden_size;
    const int64_t row_bytes = RowBytes(embedding.type, dim);
    x_.resize(tokens.size() * static_cast<size_t>(dim));
    for (size_t row = 0; row < tokens.size(); ++row) {
      DequantizeRow(embedding.type,
                    embedding.data.data() + static_cast<int64_t>(tokens[row]) * row_bytes, dim,
                    x_.data() + static_cast<int64_t>(row) * dim);
    }
    if (spec_.embedding_scale != 1.0f) {
      ops_.Scale(x_.data(), spec_.embedding_scale, static_cast<int64_t>(x_.size()));
    }
  }

  void Norm(const float* x, const std::vector<float>& weight, int64_t rows, int64_t dim,
            float* out) {
    ops_.RmsNorm(x, weight.data(), spec_.norm_weight_offset, spec_.norm_epsilon, rows, dim, out);
  }

  static void Resize(std::vector<float>& buffer, int64_t rows, int64_t dim) {
    const auto values = static_cast<size_t>(rows * dim);
    if (buffer.size() < values) buffer.resize(values);
  }

  // Keeps the rows of `buffer` that sample, moved to its front.
  void Narrow(std::vector<float>& buffer, int64_t dim) {
    for (size_t i = 0; i < sampled_indices_.size(); ++i) {
      std::memmove(buffer.data() + static_cast<int64_t>(i) * dim,
                   buffer.data() + sampled_indices_[i] * dim,
                   static_cast<size_t>(dim) * sizeof(float));
    }
  }

  // Stores keys and values of all rows; leaves queries of all rows or, narrow, of those that
  // sample, and x with the same rows.
  void KeysAndQueries(int32_t layer, const LayerWeights<Matrix>& weights, bool narrow) {
    const int64_t dim = spec_.hidden_size;
    const int64_t q_size = int64_t{spec_.num_heads} * spec_.head_dim;
    const int64_t kv_size = int64_t{spec_.num_kv_heads} * spec_.head_dim;
    Resize(h_, all_.rows, dim);
    Resize(q_, all_.rows, q_size);
    Resize(k_, all_.rows, kv_size);
    Resize(v_, all_.rows, kv_size);
    Norm(x_.data(), weights.attention_norm, all_.rows, dim, h_.data());
    if (narrow) {
      ops_.MatMul(h_.data(), all_.rows, {{&weights.key, k_.data()}, {&weights.value, v_.data()}});
      Narrow(h_, dim);
      Narrow(x_, dim);
      if (sampled_.rows > 0) ops_.MatMul(h_.data(), sampled_.rows, {{&weights.query, q_.data()}});
    } else {
      ops_.MatMul(
          h_.data(), all_.rows,
          {{&weights.query, q_.data()}, {&weights.key, k_.data()}, {&weights.value, v_.data()}});
    }
    Position(layer, all_, weights.key_bias, weights.key_norm, spec_.num_kv_heads, k_);
    if (!weights.value_bias.empty()) {
      ops_.AddBias(v_.data(), weights.value_bias.data(), all_.rows, kv_size);
    }
    const size_t group = layer_group_[static_cast<size_t>(layer)];
    ops_.StoreKv(kv_.layer(layer), all_.sequences[group], k_.data(), v_.data());
    const Rows& rows = narrow ? sampled_ : all_;
    if (rows.rows == 0) return;
    Position(layer, rows, weights.query_bias, weights.query_norm, spec_.num_heads, q_);
  }

  // Bias, norm a head and RoPE of queries or keys.
  void Position(int32_t layer, const Rows& rows, const std::vector<float>& bias,
                const std::vector<float>& norm, int32_t heads, std::vector<float>& values) {
    const int64_t head_dim = spec_.head_dim;
    if (!bias.empty()) ops_.AddBias(values.data(), bias.data(), rows.rows, heads * head_dim);
    if (!norm.empty()) Norm(values.data(), norm, rows.rows * heads, head_dim, values.data());
    const size_t group = layer_group_[static_cast<size_t>(layer)];
    ops_.ApplyRope(spec_.groups[group].rope.kind, rows.rope[group], rows.rows, heads, head_dim,
                   values.data());
  }

  void AttendAndAdd(int32_t layer, const LayerWeights<Matrix>& weights, const Rows& rows) {
    const size_t group = layer_group_[static_cast<size_t>(layer)];
    AttentionArgs args;
    args.q = q_.data();
    args.out = q_.data();
    args.heads = spec_.num_heads;
    args.pool = kv_.layer(layer);
    args.sequences = rows.sequences[group];
    args.scale = spec_.attention_scale;
    args.softcap = spec_.attention_softcap;
    args.window = spec_.groups[group].window;
    ops_.Attention(args);
    ops_.MatMul(q_.data(), rows.rows, {{&weights.attention_output, h_.data()}});
    AddResidual(weights.post_attention_norm, rows.rows);
  }

  // x += h, h normed first when the model has a norm there.
  void AddResidual(const std::vector<float>& post_norm, int64_t rows) {
    const int64_t dim = spec_.hidden_size;
    if (!post_norm.empty()) Norm(h_.data(), post_norm, rows, dim, h_.data());
    ops_.AddInPlace(x_.data(), h_.data(), rows * dim);
  }

  void FeedForward(const LayerWeights<Matrix>& weights, int64_t rows) {
    Resize(gate_, rows, spec_.ffn_size);
    Resize(up_, rows, spec_.ffn_size);
    Norm(x_.data(), weights.ffn_norm, rows, spec_.hidden_size, h_.data());
    ops_.MatMul(h_.data(), rows,
                {{&weights.ffn_gate, gate_.data()}, {&weights.ffn_up, up_.data()}});
    ops_.Gate(spec_.activation, gate_.data(), up_.data(), rows * spec_.ffn_size, gate_.data());
    ops_.MatMul(gate_.data(), rows, {{&weights.ffn_down, h_.data()}});
    AddResidual(weights.post_ffn_norm, rows);
  }

  std::span<const float> Logits() {
    const int64_t rows = sampled_.rows;
    const int64_t values = rows * spec_.vocab_size;
    Resize(logits_, rows, spec_.vocab_size);
    Norm(x_.data(), weights_->output_norm, rows, spec_.hidden_size, h_.data());
    ops_.MatMul(h_.data(), rows, {{&weights_->head, logits_.data()}});
    if (spec_.final_softcap > 0) ops_.Softcap(logits_.data(), spec_.final_softcap, values);
    return {logits_.data(), static_cast<size_t>(values)};
  }

  const std::shared_ptr<const ModelFile> file_;
  const TransformerSpec& spec_;
  const std::shared_ptr<const TransformerWeights<Matrix>> weights_;
  KvStorage kv_;
  Ops ops_;
  std::vector<size_t> layer_group_;

  Rows all_;
  Rows sampled_;                          // the tokens whose logits are wanted
  std::vector<int64_t> sampled_indices_;  // their rows in all_
  // [rows, ...]; grown to the largest step so far
  std::vector<float> x_, h_, q_, k_, v_, gate_, up_, logits_;
};

}  // namespace hexad
