#include "server/metrics/text_format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace hexad {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Shortest form that reads back to the same number, without an exponent where it stays short.
void AppendNumber(double number, std::string* out) {
  if (!std::isfinite(number)) {
    out->append(std::isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf");
    return;
  }
  std::array<char, 64> buffer;
  const double magnitude = std::abs(number);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e15);
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  out->append(buffer.data(), result.ptr);
}

void AppendCount(uint64_t number, std::string* out) {
  std::array<char, 24> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  out->append(buffer.data(), result.ptr);
}

void AppendEscaped(std::string_view text, bool quotes, std::string* out) {
  for (const char c : text) {
    if (c == '\n') {
      out->append("\\n");
    } else if (c == '\\' || (quotes && c == '"')) {
      out->push_back('\\');
      out->push_back(c);
    } else {
      out->push_back(c);
    }
  }
}

// `name` + `suffix` + labels, without the closing brace: "name{a=\"b\"". A line is made by adding
// more labels, the brace and a value.
std::string OpenSeries(std::string_view name, std::string_view suffix, const ClientMetric& metric) {
  std::string series(name);
  series.append(suffix);
  char separator = '{';
  for (const ClientMetric::Label& label : metric.label) {
    series.push_back(separator);
    series.append(label.name).append("=\"");
    AppendEscaped(label.value, true, &series);
    series.push_back('"');
    separator = ',';
  }
  return series;
}

void AppendHistogram(const std::string& name, const ClientMetric& metric, std::string* out) {
  const bool labelled = !metric.label.empty();
  const std::string bucket = OpenSeries(name, "_bucket", metric) + (labelled ? ",le=\"" : "{le=\"");
  for (const ClientMetric::Bucket& b : metric.histogram.bucket) {
    out->append(bucket);
    AppendNumber(b.upper_bound, out);
    out->append("\"} ");
    AppendCount(b.cumulative_count, out);
    out->push_back('\n');
  }
  const char* close = labelled ? "} " : " ";
  out->append(OpenSeries(name, "_sum", metric)).append(close);
  AppendNumber(metric.histogram.sample_sum, out);
  out->push_back('\n');
  out->append(OpenSeries(name, "_count", metric)).append(close);
  AppendCount(metric.histogram.sample_count, out);
  out->push_back('\n');
}

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Histogram:
      return "histogram";
    default:
      return nullptr;
  }
}

}  // namespace

void AppendFamilies(const std::vector<MetricFamily>& families, std::string* out) {
  for (const MetricFamily& family : families) {
    const char* type = TypeName(family.type);
    if (type == nullptr || family.metric.empty()) continue;
    out->append("# HELP ").append(family.name).push_back(' ');
    AppendEscaped(family.help, false, out);
    out->append("\n# TYPE ").append(family.name).append(" ").append(type).push_back('\n');
    for (const ClientMetric& metric : family.metric) {
      if (family.type == MetricType::Histogram) {
        AppendHistogram(family.name, metric, out);
        continue;
      }
      out->append(OpenSeries(family.name, "", metric)).append(metric.label.empty() ? " " : "} ");
      AppendNumber(family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value,
                   out);
      out->push_back('\n');
    }
  }
}

}  // namespace hexad
