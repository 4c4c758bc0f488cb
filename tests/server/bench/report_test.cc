#include "server/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hexad {
namespace {

using ::testing::HasSubstr;

TEST(Report, PercentilesAreNumpys) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const LatencySummary summary = Summarise(values);  // numpy.percentile(range(1, 101), ...)
  EXPECT_DOUBLE_EQ(summary.mean, 50.5);
  EXPECT_DOUBLE_EQ(summary.p50, 50.5);
  EXPECT_DOUBLE_EQ(summary.p90, 90.1);
  EXPECT_DOUBLE_EQ(summary.p95, 95.05);
  EXPECT_DOUBLE_EQ(summary.p99, 99.01);
  EXPECT_EQ(summary.max, 100);
  EXPECT_EQ(Summarise({3}).p99, 3);
  EXPECT_EQ(Summarise({}).count, 0u);
}

LoadResult Result() {
  RequestRecord good;
  good.start = 1;
  good.first_token = 1.5;
  good.end = 3.5;
  good.gaps = {0.5f, 1.5f};
  good.prompt_tokens = 10;
  good.output_tokens = 5;
  good.counted_by_usage = true;
  good.streamed = true;
  RequestRecord bad;
  bad.error_kind = "http_503";
  bad.error_detail = "busy \"now\"";
  return {{good, bad, bad}, 10, false};
}

TEST(Report, SumsUp) {
  const BenchReport report = MakeReport(Result());
  EXPECT_EQ(report.sent, 3);
  EXPECT_EQ(report.completed, 1);
  EXPECT_EQ(report.failed, 2);
  EXPECT_DOUBLE_EQ(report.ttft.p50, 0.5);
  EXPECT_DOUBLE_EQ(report.tpot.p50, 0.5);  // 2 s for 4 tokens after the first
  EXPECT_DOUBLE_EQ(report.itl.mean, 1.0);
  EXPECT_DOUBLE_EQ(report.e2e.max, 2.5);
  EXPECT_DOUBLE_EQ(report.OutputRate(), 0.5);
  EXPECT_EQ(report.errors.at("http_503").count, 2);
}

TEST(Report, TableAndJson) {
  const BenchReport report = MakeReport(Result());
  const std::string table = ReportTable(report);
  EXPECT_THAT(table, HasSubstr("1 completed, 2 failed in 10.00 s"));
  EXPECT_THAT(table, HasSubstr("error      2 x http_503: busy"));
  EXPECT_THAT(table, HasSubstr("TTFT          500.0"));
  const auto json = nlohmann::json::parse(ReportJson(report, "{\"rate\":1}"));
  EXPECT_EQ(json["settings"]["rate"], 1);
  EXPECT_EQ(json["ttft"]["p99_ms"], 500.0);
  EXPECT_EQ(json["errors"]["http_503"]["example"], "busy \"now\"");
  EXPECT_EQ(json["output_tokens_per_second"], 0.5);
  const auto empty = nlohmann::json::parse(ReportJson(MakeReport({}), "{}"));
  EXPECT_TRUE(empty["e2e"].is_null());
  EXPECT_EQ(empty["requests_per_second"], 0);
}

}  // namespace
}  // namespace hexad
