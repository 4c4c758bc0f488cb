#pragma once

// From the configuration to what LocalServing is made of: opens the models, builds the executors.

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/log/log.h"
#include "server/serving/loaded_model.h"
#include "server/serving/local_serving.h"

namespace hexad {

struct ServingParts {
  std::vector<std::unique_ptr<LoadedModel>> models;
  std::vector<ReplicaConfig> replicas;
};

// The models' sources are paths of GGUF files or that of the fallback model. Errors name the model
// or worker and what to change. Blocking: reads and packs the weights.
absl::StatusOr<ServingParts> LoadServing(const Config& config, Logger& log);

}  // namespace hexad
