#pragma once

// What planner, batcher, cost model and simulator need to know of a model. Filled by the engine
// from the weights' metadata, or by the simulator from YAML.

#include <cstdint>
#include <string>
#include <vector>

#include "kvcache/core/groups.h"

namespace hexad {

struct ModelShape {
  std::string name;
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocab_size = 0;
  int32_t max_context_tokens = 0;
  int64_t active_parameters = 0;  // touched per token, without the embedding lookup
  int64_t weight_bytes = 0;       // read per decode step
  KvLayout kv;
  std::string model_digest;  // weights and effective RoPE; part of every content key
  // Device kind, kernel set, weight layout, KV type, reduction tree: equal ids give bit-identical
  // logits under batching, chunking, preemption, cache hits, migration and restart.
  std::string numerics_id;
};

}  // namespace hexad
