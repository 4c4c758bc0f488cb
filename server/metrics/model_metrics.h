#pragma once

// The vllm:* families of one registry and the series of one model in them.

#include <memory>
#include <string>
#include <string_view>

#include "prometheus/registry.h"
#include "server/metrics/metrics.h"

namespace hexad {

// The registry outlives the result.
std::unique_ptr<ModelMetrics> MakeModelMetrics(std::string_view model_name,
                                               const ModelMetricsOptions& options,
                                               prometheus::Registry& registry);

}  // namespace hexad
