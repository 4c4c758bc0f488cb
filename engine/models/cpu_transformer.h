#pragma once

// The forward pass on the CPU's kernels: weights packed once, still quantised.

#include <memory>

#include "absl/status/statusor.h"
#include "engine/models/kv_storage.h"
#include "engine/models/model.h"
#include "engine/models/model_file.h"
#include "kernels/thread_team.h"
#include "kernels/types.h"

namespace hexad {

// Weights of one model, packed; executors of one process may share them.
class CpuWeights;
std::shared_ptr<const CpuWeights> PackCpuWeights(const ModelFile& model, ThreadTeam& team,
                                                 Activations activations);
Activations ActivationsOf(const CpuWeights& weights);  // that they were packed for

// `team` is used by the caller of Forward and must outlive the model.
absl::StatusOr<std::unique_ptr<Model>> MakeCpuTransformer(std::shared_ptr<const ModelFile> file,
                                                          std::shared_ptr<const CpuWeights> weights,
                                                          const KvStorageOptions& kv,
                                                          ThreadTeam& team);

}  // namespace hexad
