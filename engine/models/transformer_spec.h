#pragma once

// One description of a decoder-only transformer, whatever its family: what differs between Llama,
// Qwen 2 and Gemma 3 is data here, not code in the forward pass. A family's file fills it from the
// metadata of a GGUF file.
//
// A layer, with what is optional in brackets:
//   h = norm(x); q, k, v = h W (+ bias); q, k = [norm a head]; q, k = rope;
//   x += [norm](attention(q, k, v) W)
//   h = norm(x); x += [norm]((act(h W_gate) * h W_up) W_down)

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/elementwise.h"

namespace hexad {

enum class Activation : uint8_t { kSilu, kGelu };

struct RopeSpec {
  RopeKind kind = RopeKind::kInterleaved;
  double base = 10000.0;
  double frequency_scale = 1.0;  // 1 / (linear scaling factor)
  bool uses_factors = false;     // divide by the tensor rope_freqs.weight (Llama 3)
};

// Layers that share KV retention and RoPE. Becomes a KvGroup of the model's shape.
struct AttentionGroup {
  int32_t window = 0;  // tokens a query sees, itself included; 0: all before it
  RopeSpec rope;
  std::vector<int32_t> layers;  // ascending
};

struct TransformerSpec {
  std::string name;          // general.name, else the architecture
  std::string architecture;  // general.architecture

  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t ffn_size = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t rope_dim = 0;  // values of a head that rotate; even
  int32_t vocab_size = 0;
  int32_t max_context_tokens = 0;

  float norm_epsilon = 1e-5f;
  float norm_weight_offset = 0.0f;  // 1 where the file holds weight - 1
  bool query_key_norm = false;
  bool post_norms = false;  // of the attention's and the feed-forward's output
  bool qkv_bias = false;
  bool tied_head = false;  // no output.weight: the embedding is the head
  Activation activation = Activation::kSilu;

  float embedding_scale = 1.0f;
  float attention_scale = 1.0f;
  float attention_softcap = 0.0f;  // 0: none
  float final_softcap = 0.0f;      // 0: none

  std::vector<AttentionGroup> groups;  // every layer is in one; the full one first
};

}  // namespace hexad
