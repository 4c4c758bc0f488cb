#pragma once

// What the batcher, the planner and the cost model are told of a model on an executor.

#include <cstdint>
#include <string>

#include "engine/models/model_file.h"
#include "kernels/types.h"
#include "scheduler/step/model_shape.h"

namespace hexad {

// block_tokens: tokens per pool block. kv_type: precision of keys and values in the pool.
ModelShape MakeModelShape(const ModelFile& model, int32_t block_tokens, DType kv_type,
                          std::string numerics_id);

}  // namespace hexad
