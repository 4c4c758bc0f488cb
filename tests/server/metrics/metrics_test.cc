#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hexad {
namespace {

using testing::HasSubstr;

// What one family looks like: the exposition's own words, no values.
struct Family {
  std::string type;
  std::set<std::string> labels;           // without le
  std::vector<std::string> buckets;       // of the first series, without +Inf
  std::map<std::string, double> samples;  // by whole series text
};

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
}

// name[{label="value",...}] value
struct Sample {
  std::string series;  // name and labels as written
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

std::optional<Sample> ParseSample(const std::string& line) {
  Sample sample;
  size_t at = 0;
  const auto name = [&] {
    const size_t start = at;
    while (at < line.size() && IsNameChar(line[at])) ++at;
    return line.substr(start, at - start);
  };
  sample.name = name();
  if (at < line.size() && line[at] == '{') {
    do {
      ++at;  // '{' or ','
      std::string label = name();
      if (label.empty() || line.substr(at, 2) != "=\"") return std::nullopt;
      const size_t start = at += 2;
      while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
      if (at >= line.size()) return std::nullopt;
      sample.labels.emplace_back(label, line.substr(start, at - start));
      ++at;
    } while (at < line.size() && line[at] == ',');
    if (at >= line.size() || line[at++] != '}') return std::nullopt;
  }
  sample.series = line.substr(0, at);
  if (sample.name.empty() || at >= line.size() || line[at++] != ' ') return std::nullopt;
  char* end = nullptr;
  sample.value = std::strtod(line.c_str() + at, &end);
  if (end == line.c_str() + at || *end != 0) return std::nullopt;
  return sample;
}

// A strict reader of the text format, as far as we use it: any line it cannot read is a failure.
std::map<std::string, Family> ParseExposition(const std::string& text) {
  std::map<std::string, Family> families;
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      std::istringstream words(line.substr(7));
      std::string type;
      words >> current >> type;
      EXPECT_FALSE(families.contains(current)) << "twice: " << current;
      families[current].type = type;
      continue;
    }
    const std::optional<Sample> sample = ParseSample(line);
    if (!sample.has_value()) {
      ADD_FAILURE() << "unreadable: " << line;
      continue;
    }
    EXPECT_TRUE(sample->name.starts_with(current)) << line;
    Family& family = families[current];
    family.samples[sample->series] = sample->value;
    for (const auto& [label, value] : sample->labels) {
      if (label != "le") {
        family.labels.insert(label);
      } else if (value != "+Inf" &&
                 (family.buckets.empty() || std::stod(value) > std::stod(family.buckets.back()))) {
        family.buckets.push_back(value);
      }
    }
  }
  return families;
}

std::string Describe(const std::map<std::string, Family>& families) {
  std::ostringstream out;
  for (const auto& [name, family] : families) {
    out << name << ' ' << family.type;
    const char* separator = " ";
    for (const std::string& label : family.labels) {
      out << separator << label;
      separator = ",";
    }
    for (const std::string& bucket : family.buckets) out << ' ' << bucket;
    out << '\n';
  }
  return out.str();
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr char kLabels[] = "{engine=\"0\",model_name=\"m\"}";

class MetricsTest : public testing::Test {
 protected:
  double Value(const std::string& series) {
    const auto families = ParseExposition(metrics_.Render());
    for (const auto& [name, family] : families) {
      if (const auto found = family.samples.find(series); found != family.samples.end()) {
        return found->second;
      }
    }
    ADD_FAILURE() << "no series " << series;
    return -1;
  }

  Metrics metrics_{{"0.1.0", "abc"}};
  ModelMetrics& model_ = metrics_.Model("m", {.max_context_tokens = 8192, .num_blocks = 100});
};

TEST_F(MetricsTest, NamesTypesLabelsAndBucketsAreTheGolden) {
  metrics_.OnHttpRequest("/v1/models", 200);
  const std::string golden =
      ReadFile(std::string(HEXAD_SOURCE_DIR) + "/tests/server/metrics/exposition.golden");
  EXPECT_EQ(Describe(ParseExposition(metrics_.Render())), golden);
}

TEST_F(MetricsTest, RequestsCount) {
  model_.SetQueue(3, 4, 0.5);
  model_.OnStep(100, 2);
  model_.OnStep(0, 3);
  model_.OnGenerated(5);
  model_.OnPrefixLookup(48, 32);
  model_.OnPreemption(2);
  model_.OnFirstToken(0.07);
  model_.OnInterToken(0.05);  // on a boundary: counts in it
  model_.OnRequestDone({.reason = FinishReason::kLength,
                        .prompt_tokens = 40,
                        .cached_tokens = 32,
                        .output_tokens = 5,
                        .num_choices = 1,
                        .max_tokens = 5,
                        .queue_seconds = 0.1,
                        .prefill_seconds = 0.2,
                        .decode_seconds = 0.4,
                        .inference_seconds = 0.6,
                        .e2e_seconds = 0.7});
  model_.OnRequestDone({.reason = FinishReason::kCancelled, .prompt_tokens = 1000});
  const std::string l = kLabels;
  EXPECT_EQ(Value("vllm:num_requests_running" + l), 3);
  EXPECT_EQ(Value("vllm:num_requests_waiting" + l), 4);
  EXPECT_EQ(Value("vllm:kv_cache_usage_perc" + l), 0.5);
  EXPECT_EQ(Value("vllm:generation_tokens_total" + l), 5);
  EXPECT_EQ(Value("vllm:iteration_tokens_total_count" + l), 2);
  EXPECT_EQ(Value("vllm:iteration_tokens_total_sum" + l), 105);
  EXPECT_EQ(Value("vllm:prefix_cache_queries_total" + l), 48);
  EXPECT_EQ(Value("vllm:prefix_cache_hits_total" + l), 32);
  EXPECT_EQ(Value("vllm:num_preemptions_total" + l), 2);
  EXPECT_EQ(Value("vllm:prompt_tokens_total" + l), 40);  // the cancelled one never ran
  EXPECT_EQ(Value("vllm:prompt_tokens_cached_total" + l), 32);
  const auto source = [](const char* name) {
    return std::string(
               "vllm:prompt_tokens_by_source_total{engine=\"0\",model_name=\"m\",source=\"") +
           name + "\"}";
  };
  EXPECT_EQ(Value(source("local_compute")), 8);
  EXPECT_EQ(Value(source("local_cache_hit")), 32);
  EXPECT_EQ(Value(source("external_kv_transfer")), 0);
  const auto finished = [](const char* reason) {
    return std::string("vllm:request_success_total{engine=\"0\",finished_reason=\"") + reason +
           "\",model_name=\"m\"}";
  };
  EXPECT_EQ(Value(finished("length")), 1);
  EXPECT_EQ(Value(finished("abort")), 1);
  EXPECT_EQ(Value(finished("stop")), 0);
  EXPECT_EQ(Value(finished("error")), 0);
  EXPECT_NEAR(Value("vllm:request_time_per_output_token_seconds_sum" + l), 0.1, 1e-9);
  EXPECT_EQ(Value("vllm:request_queue_time_seconds_count" + l), 1);
  EXPECT_EQ(Value("vllm:request_params_max_tokens_count" + l), 1);
  EXPECT_EQ(
      Value("vllm:inter_token_latency_seconds_bucket{engine=\"0\",model_name=\"m\",le=\"0.05\"}"),
      1);
  EXPECT_EQ(
      Value("vllm:inter_token_latency_seconds_bucket{engine=\"0\",model_name=\"m\",le=\"0.025\"}"),
      0);
  EXPECT_EQ(
      Value("vllm:inter_token_latency_seconds_bucket{engine=\"0\",model_name=\"m\",le=\"+Inf\"}"),
      1);
}

TEST_F(MetricsTest, ModelsAndEnginesAreSeparateSeries) {
  ModelMetrics& other = metrics_.Model("m", {.engine = "1"});
  EXPECT_NE(&other, &model_);
  EXPECT_EQ(&metrics_.Model("m"), &model_);
  other.SetQueue(7, 0, 0);
  EXPECT_EQ(Value("vllm:num_requests_running{engine=\"1\",model_name=\"m\"}"), 7);
  EXPECT_EQ(Value(std::string("vllm:num_requests_running") + kLabels), 0);
}

TEST_F(MetricsTest, OddNamesAreEscaped) {
  metrics_.Model("a\"b\\c\nd");
  EXPECT_THAT(metrics_.Render(), HasSubstr("model_name=\"a\\\"b\\\\c\\nd\""));
  ParseExposition(metrics_.Render());
}

TEST_F(MetricsTest, RoutesAreCapped) {
  for (int i = 0; i < 5000; ++i) metrics_.OnHttpRequest("/client/" + std::to_string(i), 200);
  metrics_.OnHttpRequest("/client/1", 7'000'000);
  const auto families = ParseExposition(metrics_.Render());
  EXPECT_LE(families.at("hexad_http_requests_total").samples.size(), 258u);
  EXPECT_EQ(Value("hexad_http_requests_total{route=\"other\",status=\"200\"}"), 5000 - 256);
  EXPECT_EQ(Value("hexad_http_requests_total{route=\"/client/1\",status=\"other\"}"), 1);
}

TEST_F(MetricsTest, ProcessMetricsAreAlive) {
  EXPECT_GT(Value("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(Value("process_open_fds"), 3);
  EXPECT_GT(Value("process_cpu_seconds_total"), 0);
}

TEST_F(MetricsTest, ScrapesAndUpdatesRunTogether) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 2000; ++i) {
        model_.OnInterToken(0.01 * (i % 100));
        model_.OnStep(1, 1);
        metrics_.OnHttpRequest("/v1/chat/completions", 200);
      }
    });
  }
  for (int i = 0; i < 20; ++i) metrics_.Render();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Value(std::string("vllm:inter_token_latency_seconds_count") + kLabels), 4000);
  EXPECT_EQ(Value("hexad_http_requests_total{route=\"/v1/chat/completions\",status=\"200\"}"),
            4000);
}

// A figure for the log, no assertion: the endpoint picker scrapes every 50 ms.
TEST_F(MetricsTest, ScrapeTimeIsPrinted) {
  metrics_.Render();
  const auto start = std::chrono::steady_clock::now();
  size_t bytes = 0;
  for (int i = 0; i < 20; ++i) bytes += metrics_.Render().size();
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  std::cout << "scrape: " << spent.count() / 20 << " us, " << bytes / 20 << " bytes\n";
  EXPECT_GT(bytes, 0u);
}

// Every vllm:* series that the published dashboards query must exist.
TEST_F(MetricsTest, DashboardsFindTheirSeries) {
  const char* data = std::getenv("HEXAD_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(data != nullptr ? data
                                            : std::string(HEXAD_SOURCE_DIR) + "/../shared/data") /
      "grafana" / "vllm";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no dashboards at " << folder;
  std::set<std::string> exposed;
  for (const auto& [name, family] : ParseExposition(metrics_.Render())) {
    for (const auto& [series, value] : family.samples)
      exposed.insert(series.substr(0, series.find('{')));
  }
  std::set<std::string> missing;
  size_t wanted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = ReadFile(entry.path());
    for (size_t at = text.find("vllm:"); at != std::string::npos; at = text.find("vllm:", at)) {
      const size_t start = at;
      while (at < text.size() && IsNameChar(text[at])) ++at;
      ++wanted;
      const std::string name = text.substr(start, at - start);
      if (!exposed.contains(name)) missing.insert(name);
    }
  }
  EXPECT_GT(wanted, 0u);
  std::cout << wanted << " queries of vllm:* in the dashboards, missing series: " << missing.size()
            << '\n';
  for (const std::string& name : missing) std::cout << "  missing " << name << '\n';
  EXPECT_TRUE(missing.empty());
}

}  // namespace
}  // namespace hexad
