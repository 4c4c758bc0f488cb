#include "server/bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "server/client/json_text.h"

namespace hexad {
namespace {

// REQUIRES: sorted and not empty.
double Percentile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - static_cast<double>(low));
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string LatencyRow(const char* label, const LatencySummary& summary) {
  if (summary.count == 0) return "";
  char text[160];
  std::snprintf(text, sizeof(text), "%-8s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", label,
                summary.mean * 1e3, summary.p50 * 1e3, summary.p90 * 1e3, summary.p95 * 1e3,
                summary.p99 * 1e3, summary.max * 1e3);
  return text;
}

std::string LatencyJson(const LatencySummary& summary) {
  if (summary.count == 0) return "null";
  std::string json = "{\"count\":" + std::to_string(summary.count);
  for (const auto& [name, value] : {std::pair("mean", summary.mean), std::pair("p50", summary.p50),
                                    std::pair("p90", summary.p90), std::pair("p95", summary.p95),
                                    std::pair("p99", summary.p99), std::pair("max", summary.max)}) {
    json += ",\"" + std::string(name) + "_ms\":" + Fixed(value * 1e3, 3);
  }
  return json + "}";
}

}  // namespace

LatencySummary Summarise(std::vector<double> values) {
  LatencySummary summary;
  summary.count = values.size();
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double value : values) sum += value;
  summary.mean = sum / static_cast<double>(values.size());
  summary.p50 = Percentile(values, 0.50);
  summary.p90 = Percentile(values, 0.90);
  summary.p95 = Percentile(values, 0.95);
  summary.p99 = Percentile(values, 0.99);
  summary.max = values.back();
  return summary;
}

BenchReport MakeReport(const LoadResult& result) {
  BenchReport report;
  report.seconds = result.seconds;
  report.interrupted = result.interrupted;
  report.sent = static_cast<int64_t>(result.records.size());
  std::vector<double> ttft, tpot, itl, e2e;
  for (const RequestRecord& record : result.records) {
    if (!record.error_kind.empty()) {
      ++report.failed;
      BenchReport::ErrorSum& sum = report.errors[record.error_kind];
      if (++sum.count == 1) sum.example = record.error_detail;
      continue;
    }
    ++report.completed;
    report.counted_by_usage = report.counted_by_usage && record.counted_by_usage;
    report.prompt_tokens += record.prompt_tokens;
    report.cached_tokens += record.cached_tokens;
    report.output_tokens += record.output_tokens;
    e2e.push_back(record.end - record.start);
    if (!record.streamed || record.first_token <= 0) continue;
    ttft.push_back(record.first_token - record.start);
    if (record.output_tokens > 1) {
      tpot.push_back((record.end - record.first_token) /
                     static_cast<double>(record.output_tokens - 1));
    }
    itl.insert(itl.end(), record.gaps.begin(), record.gaps.end());
  }
  report.ttft = Summarise(std::move(ttft));
  report.tpot = Summarise(std::move(tpot));
  report.itl = Summarise(std::move(itl));
  report.e2e = Summarise(std::move(e2e));
  return report;
}

std::string ReportTable(const BenchReport& report) {
  std::string text = "requests   " + std::to_string(report.completed) + " completed, " +
                     std::to_string(report.failed) + " failed in " + Fixed(report.seconds, 2) +
                     " s" + (report.interrupted ? " (interrupted)" : "") + "\n";
  text += "tokens     " + std::to_string(report.prompt_tokens) + " in (" +
          std::to_string(report.cached_tokens) + " cached), " +
          std::to_string(report.output_tokens) + " out" +
          (report.counted_by_usage ? "" : ", counted by pieces: the server sent no usage") + "\n";
  text += "throughput " + Fixed(report.RequestRate(), 2) + " requests/s, " +
          Fixed(report.OutputRate(), 1) + " output tokens/s\n";
  for (const auto& [kind, sum] : report.errors) {
    text += "error      " + std::to_string(sum.count) + " x " + kind + ": " + sum.example + "\n";
  }
  if (report.e2e.count == 0) return text;
  text += "\nms             mean        p50        p90        p95        p99        max\n";
  text += LatencyRow("TTFT", report.ttft) + LatencyRow("TPOT", report.tpot) +
          LatencyRow("ITL", report.itl) + LatencyRow("e2e", report.e2e);
  return text;
}

std::string ReportJson(const BenchReport& report, const std::string& settings_json) {
  std::string json = "{\"settings\":" + settings_json;
  json += ",\"seconds\":" + Fixed(report.seconds, 3);
  json += ",\"interrupted\":" + std::string(report.interrupted ? "true" : "false");
  json += ",\"requests\":{\"sent\":" + std::to_string(report.sent) +
          ",\"completed\":" + std::to_string(report.completed) +
          ",\"failed\":" + std::to_string(report.failed) + "}";
  json += ",\"tokens\":{\"prompt\":" + std::to_string(report.prompt_tokens) +
          ",\"cached\":" + std::to_string(report.cached_tokens) +
          ",\"output\":" + std::to_string(report.output_tokens) +
          ",\"counted_by_usage\":" + (report.counted_by_usage ? "true" : "false") + "}";
  json += ",\"requests_per_second\":" + Fixed(report.RequestRate(), 4);
  json += ",\"output_tokens_per_second\":" + Fixed(report.OutputRate(), 4);
  json += ",\"ttft\":" + LatencyJson(report.ttft) + ",\"tpot\":" + LatencyJson(report.tpot) +
          ",\"itl\":" + LatencyJson(report.itl) + ",\"e2e\":" + LatencyJson(report.e2e);
  json += ",\"errors\":{";
  bool first = true;
  for (const auto& [kind, sum] : report.errors) {
    json += (first ? "" : ",") + JsonString(kind) + ":{\"count\":" + std::to_string(sum.count) +
            ",\"example\":" + JsonString(sum.example) + "}";
    first = false;
  }
  return json + "}}\n";
}

}  // namespace hexad
