#include "server/bench/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace hexad {
namespace {

using ::testing::HasSubstr;

WorkloadOptions Options() {
  WorkloadOptions options;
  options.model = "m";
  options.input_tokens = *LengthDistribution::Parse("20");
  options.output_tokens = *LengthDistribution::Parse("7");
  return options;
}

size_t CountWords(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
}

TEST(Workload, BodiesHoldWhatWasAsked) {
  WorkloadOptions options = Options();
  options.temperature = 0;
  options.ignore_eos = true;
  const auto body = nlohmann::json::parse(Workload(options).Body(3));
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["max_tokens"], 7);
  EXPECT_EQ(body["temperature"], 0);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  ASSERT_EQ(body["messages"].size(), 1u);
  EXPECT_EQ(CountWords(body["messages"][0]["content"]), 20u);
  options.stream = false;
  EXPECT_FALSE(nlohmann::json::parse(Workload(options).Body(3)).contains("stream_options"));
}

TEST(Workload, TheSeedDecidesAndRequestsDiffer) {
  WorkloadOptions options = Options();
  EXPECT_EQ(Workload(options).Body(5), Workload(options).Body(5));
  EXPECT_NE(Workload(options).Body(5), Workload(options).Body(6));
  const std::string before = Workload(options).Body(5);
  options.seed = 2;
  EXPECT_NE(Workload(options).Body(5), before);
}

TEST(Workload, PrefixesAreSharedWithinAGroup) {
  WorkloadOptions options = Options();
  options.prefix_tokens = 50;
  options.prefix_groups = 3;
  std::set<std::string> prefixes;
  std::set<std::string> questions;
  for (uint64_t i = 0; i < 60; ++i) {
    const auto body = nlohmann::json::parse(Workload(options).Body(i));
    EXPECT_EQ(CountWords(body["messages"][0]["content"]), 50u);
    prefixes.insert(body["messages"][0]["content"]);
    questions.insert(body["messages"][1]["content"]);
  }
  EXPECT_EQ(prefixes.size(), 3u);
  EXPECT_EQ(questions.size(), 60u);
}

TEST(Workload, DataSets) {
  const auto entries = ParseDataset(
      "{\"prompt\":\"caf\\u00e9 \\\"x\\\"\",\"max_tokens\":3}\n\n"
      "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\r\n",
      "d.jsonl");
  ASSERT_TRUE(entries.ok()) << entries.status();
  WorkloadOptions options = Options();
  options.dataset = *entries;
  const Workload workload(options);
  const auto first = nlohmann::json::parse(workload.Body(2));  // goes round
  EXPECT_EQ(first["messages"][0]["content"], "café \"x\"");
  EXPECT_EQ(first["max_tokens"], 3);
  const auto second = nlohmann::json::parse(workload.Body(1));
  EXPECT_EQ(second["messages"][0]["content"], "hi");
  EXPECT_EQ(second["max_tokens"], 7);
}

TEST(Workload, BadDataSetsNameTheLine) {
  const auto error = [](const char* text) {
    return std::string(ParseDataset(text, "d").status().message());
  };
  EXPECT_THAT(error("{\"prompt\":\"a\"}\n{oops\n"), HasSubstr("d:2: not a JSON object"));
  EXPECT_THAT(error("{\"text\":\"a\"}"), HasSubstr("d:1: neither"));
  EXPECT_THAT(error("{\"messages\":[]}"), HasSubstr("d:1: neither"));
  EXPECT_THAT(error("\n \n"), HasSubstr("no entries"));
}

TEST(Arrivals, FixedAndPoisson) {
  Arrivals fixed(4, false, 1);
  EXPECT_EQ(fixed.Next(), 0);
  EXPECT_EQ(fixed.Next(), 0.25);
  EXPECT_EQ(fixed.Next(), 0.5);
  Arrivals poisson(10, true, 1);
  Arrivals same(10, true, 1);
  double last = 0;
  double squares = 0;
  for (int i = 0; i <= 20000; ++i) {
    const double now = poisson.Next();
    EXPECT_EQ(now, same.Next());
    EXPECT_GE(now, last);
    squares += (now - last) * (now - last);
    last = now;
  }
  EXPECT_NEAR(last / 20000, 0.1, 0.003);           // the mean gap
  EXPECT_NEAR(squares / 20000, 2 * 0.01, 0.0015);  // exponential: E[gap^2] = 2 mean^2
}

}  // namespace
}  // namespace hexad
