#pragma once

// An executor without arithmetic: real KV accounting, time from the cost model, text from the seed.
//
// What it is for: large clusters on one machine, schedulers under load, front ends without weights.
// A token is a pure function of (seed, position), so preemption and failover cannot change it.

#include <memory>
#include <vector>

#include "engine/executor.h"
#include "scheduler/cost/cost_model.h"

namespace hexad {

struct EmulatedOptions {
  ModelShape shape;
  std::vector<uint32_t> pool_blocks;  // per group
  CostModel cost;
  double speed_up = 1.0;  // modelled seconds per real second; > 0
  // Tokens are drawn from [first_token, end_token), and `end_of_sequence` instead with the given
  // probability when it is not negative.
  int32_t first_token = 0;
  int32_t end_token = 0;
  TokenId end_of_sequence{-1};
  double end_probability = 0;
};

// REQUIRES: 0 <= first_token < end_token <= shape.vocab_size.
std::unique_ptr<Executor> MakeEmulatedExecutor(EmulatedOptions options);

}  // namespace hexad
