#pragma once

// process_*: memory, CPU time and descriptors of this process, by the names of Prometheus' client
// libraries. Read at each scrape; a few system calls.

#include <vector>

#include "prometheus/metric_family.h"

namespace hexad {

std::vector<prometheus::MetricFamily> CollectProcessMetrics();

}  // namespace hexad
