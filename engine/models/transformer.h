#pragma once

// The forward pass, once for every family and for both host executors. `Ops` is the arithmetic:
// CpuOps (packed weights, a thread team, fused passes) or ReferenceOps (weights as in the file,
// plain loops). Ops::Input is what a product multiplies: rows in the forms that its weights take.
//
// Each row of every buffer is computed from that row, its position and the KV it sees, so how rows
// are batched or chunked changes no bit. In the last layer only the rows whose logits are wanted go
// on once their keys and values are stored.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/models/kv_storage.h"
#include "engine/models/model.h"
#include "engine/models/model_file.h"
#include "engine/models/transformer_weights.h"
#include "kernels/aligned.h"
#include "kernels/attention.h"
#include "kernels/layer_ops.h"
#include "kernels/matmul.h"

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

  absl::StatusOr<ForwardResult> Forward(const ForwardBatch& batch) override {
    SelectRows(batch);
    Embed(batch.tokens);
    float* residual = nullptr;  // what is still to be added to x
    const std::vector<float>* post_norm = nullptr;
    for (int32_t layer = 0; layer < spec_.num_layers; ++layer) {
      const bool last = layer + 1 == spec_.num_layers;
      const bool narrow = last && sampled_.rows < all_.rows;
      const Rows& rows = narrow ? sampled_ : all_;
      const LayerWeights<Matrix>& weights = weights_->layers[static_cast<size_t>(layer)];
      KeysAndQueries(layer, weights, narrow, residual, post_norm);
      if (rows.rows == 0) return ForwardResult();
      Attend(layer, weights, rows);
      FeedForward(weights, rows.rows);
      residual = h_.data();
      post_norm = &weights.post_ffn_norm;
    }
    return Logits(residual, post_norm);
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
    std::vector<typename Ops::AttentionPlan> plans;  // of each group
  };

  void SelectRows(const ForwardBatch& batch) {
    for (Rows* set : {&all_, &sampled_}) {
      set->rows = 0;
      set->positions.clear();
      set->sequences.assign(spec_.groups.size(), {});
      set->rope.resize(spec_.groups.size());
      set->plans.resize(spec_.groups.size());
    }
    sampled_indices_.clear();
    logit_rows_.clear();
    for (const ForwardSequence& sequence : batch.sequences) {
      for (int32_t i = 0; i < sequence.num_tokens; ++i) {
        all_.positions.push_back(sequence.first_position + i);
      }
      AddSequence(sequence, sequence.first_position, sequence.num_tokens, all_);
      const int64_t end = sequence.first_position + sequence.num_tokens;
      for (int32_t i = sequence.num_logits; i > 0; --i) {
        sampled_indices_.push_back(all_.rows - i);
        sampled_.positions.push_back(end - i);
        logit_rows_.push_back(!sequence.only_best);
      }
      if (sequence.num_logits > 0) {
        AddSequence(sequence, end - sequence.num_logits, sequence.num_logits, sampled_);
      }
    }
    for (Rows* set : {&all_, &sampled_}) {
      for (size_t g = 0; g < spec_.groups.size(); ++g) {
        ops_.PrepareRope(set->positions, weights_->rope_frequencies[g], set->rope[g]);
        const AttentionGroup& group = spec_.groups[g];
        ops_.PlanAttention(set->sequences[g], kv_.layer(group.layers.front()).layout,
                           spec_.num_heads, group.window, set->plans[g]);
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
    x_.resize(tokens.size() * static_cast<size_t>(spec_.hidden_size));
    ops_.Embed(*file_->tensors.token_embedding, spec_.tied_head ? &weights_->head : nullptr, tokens,
               x_.data());
    if (spec_.embedding_scale != 1.0f) {
      ops_.Scale(x_.data(), spec_.embedding_scale, static_cast<int64_t>(x_.size()));
    }
  }

  NormWeights NormOf(const std::vector<float>& weight) const {
    return {weight.empty() ? nullptr : weight.data(), spec_.norm_weight_offset, spec_.norm_epsilon};
  }

  // x += [norm](residual), input = norm(x) for products with `matrices`.
  void AddAndNorm(float* residual, const std::vector<float>* post_norm,
                  const std::vector<float>& norm, int64_t rows,
                  std::initializer_list<const Matrix*> matrices) {
    AddAndNormArgs args;
    args.x = x_.data();
    args.h = residual;
    if (post_norm != nullptr) args.post_norm = NormOf(*post_norm);
    args.norm = NormOf(norm);
    args.rows = rows;
    ops_.AddAndNorm(args, matrices, input_);
  }

  static void Resize(AlignedVector<float>& buffer, int64_t rows, int64_t dim) {
    const auto values = static_cast<size_t>(rows * dim);
    if (buffer.size() < values) buffer.resize(values);
  }

  // Keeps the rows of `buffer` that sample, moved to its front.
  void Narrow(AlignedVector<float>& buffer, int64_t dim) {
    for (size_t i = 0; i < sampled_indices_.size(); ++i) {
      std::memmove(buffer.data() + static_cast<int64_t>(i) * dim,
                   buffer.data() + sampled_indices_[i] * dim,
                   static_cast<size_t>(dim) * sizeof(float));
    }
  }

  // Stores keys and values of all rows; leaves queries of all rows or, narrow, of those that
  // sample, and x with the same rows.
  void KeysAndQueries(int32_t layer, const LayerWeights<Matrix>& weights, bool narrow,
                      float* residual, const std::vector<float>* post_norm) {
    const int64_t dim = spec_.hidden_size;
    Resize(h_, all_.rows, dim);
    Resize(q_, all_.rows, int64_t{spec_.num_heads} * spec_.head_dim);
    Resize(k_, all_.rows, int64_t{spec_.num_kv_heads} * spec_.head_dim);
    Resize(v_, all_.rows, int64_t{spec_.num_kv_heads} * spec_.head_dim);
    AddAndNorm(residual, post_norm, weights.attention_norm, all_.rows,
               {&weights.query, &weights.key, &weights.value});
    if (!narrow) {
      ops_.MatMul(
          input_,
          {{&weights.query, q_.data()}, {&weights.key, k_.data()}, {&weights.value, v_.data()}});
      return Position(layer, weights, all_, true, true);
    }
    ops_.MatMul(input_, {{&weights.key, k_.data()}, {&weights.value, v_.data()}});
    Position(layer, weights, all_, false, true);
    if (sampled_.rows == 0) return;
    Narrow(x_, dim);
    AddAndNorm(nullptr, nullptr, weights.attention_norm, sampled_.rows, {&weights.query});
    ops_.MatMul(input_, {{&weights.query, q_.data()}});
    Position(layer, weights, sampled_, true, false);
  }

  // Bias, norm a head and RoPE of queries, and of keys and values, which are stored.
  void Position(int32_t layer, const LayerWeights<Matrix>& weights, const Rows& rows, bool queries,
                bool keys) {
    const auto data = [](const std::vector<float>& vector) {
      return vector.empty() ? nullptr : vector.data();
    };
    const size_t group = layer_group_[static_cast<size_t>(layer)];
    PositionArgs args;
    if (queries) {
      args.query = {q_.data(), spec_.num_heads, data(weights.query_bias),
                    NormOf(weights.query_norm)};
    }
    if (keys) {
      args.key = {k_.data(), spec_.num_kv_heads, data(weights.key_bias), NormOf(weights.key_norm)};
      args.value = v_.data();
      args.value_bias = data(weights.value_bias);
    }
    args.rows = rows.rows;
    args.head_dim = spec_.head_dim;
    args.rope = spec_.groups[group].rope.kind;
    args.pool = kv_.layer(layer);
    args.sequences = rows.sequences[group];
    ops_.PositionAndStore(rows.rope[group], args);
  }

  // h = attention's output, to be added to x.
  void Attend(int32_t layer, const LayerWeights<Matrix>& weights, const Rows& rows) {
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
    ops_.Attention(args, rows.plans[group]);
    ops_.Put(q_.data(), rows.rows, weights.attention_output, input_);
    ops_.MatMul(input_, {{&weights.attention_output, h_.data()}});
  }

  // x += [norm](h); h = the feed-forward's output, to be added to x.
  void FeedForward(const LayerWeights<Matrix>& weights, int64_t rows) {
    AddAndNorm(h_.data(), &weights.post_attention_norm, weights.ffn_norm, rows,
               {&weights.ffn_gate, &weights.ffn_up});
    ops_.GatedMatMul(input_, weights.ffn_gate, weights.ffn_up, spec_.activation, weights.ffn_down,
                     gated_);
    ops_.MatMul(gated_, {{&weights.ffn_down, h_.data()}});
  }

  ForwardResult Logits(float* residual, const std::vector<float>* post_norm) {
    if (sampled_.rows == 0) return {};
    const int64_t vocabulary = spec_.vocab_size;
    AddAndNorm(residual, post_norm, weights_->output_norm, sampled_.rows, {&weights_->head});
    const auto kept = std::count(logit_rows_.begin(), logit_rows_.end(), true);
    Resize(logits_, kept, vocabulary);
    std::vector<LogitRow> rows(logit_rows_.size());
    float* next = logits_.data();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!logit_rows_[i]) continue;
      rows[i].logits = next;
      next += vocabulary;
    }
    ops_.Logits(input_, weights_->head, spec_.final_softcap, rows);
    best_.clear();
    for (const LogitRow& row : rows) best_.push_back(TokenId{row.best});
    return {{logits_.data(), static_cast<size_t>(kept * vocabulary)}, best_};
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
  std::vector<bool> logit_rows_;          // whether logits are wanted, or the best token alone
  // [rows, ...]; grown to the largest step so far
  AlignedVector<float> x_, h_, q_, k_, v_, logits_;
  typename Ops::Input input_, gated_;
  std::vector<TokenId> best_;
};

}  // namespace hexad
