#pragma once

// The Prometheus text format 0.0.4 of collected families. Ours because /metrics is scraped many
// times a second by the Gateway API endpoint picker and the library's goes through iostreams.

#include <string>
#include <vector>

#include "prometheus/metric_family.h"

namespace hexad {

// Appends counters, gauges and histograms; families of other types are left out.
void AppendFamilies(const std::vector<prometheus::MetricFamily>& families, std::string* out);

}  // namespace hexad
