#include "server/log/log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hexad {
namespace {

enum class ExampleId : uint64_t {};

class LogTest : public testing::Test {
 protected:
  Logger::Options Options(LogFormat format, LogLevel level = LogLevel::kInfo) {
    Logger::Options options;
    options.level = level;
    options.format = format;
    options.sink = [this](std::string_view line) { lines_.emplace_back(line); };
    options.now = [] { return absl::FromUnixMicros(1'772'366'400'000'123); };
    return options;
  }

  std::vector<std::string> lines_;
};

TEST_F(LogTest, TextLineHasTimeLevelMessageAndFields) {
  Logger log(Options(LogFormat::kText));
  log.Info("call finished", {{"request", "req-7"},
                             {"call", ExampleId{9}},
                             {"tokens", 42},
                             {"seconds", 0.25},
                             {"cached", true},
                             {"bytes", uint64_t{18446744073709551615u}},
                             {"note", std::string("two words")},
                             {"empty", ""}});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0],
            "2026-03-01T12:00:00.000123Z info call finished request=req-7 call=9 tokens=42 "
            "seconds=0.25 cached=true bytes=18446744073709551615 note=\"two words\" empty=\"\"\n");
}

TEST_F(LogTest, JsonLineParses) {
  Logger log(Options(LogFormat::kJson));
  const absl::Status status = absl::NotFoundError("no \"such\" file");
  log.Warn("x", {{"path", "a\nb\t\"c\"\\"},
                 {"n", -3},
                 {"ok", false},
                 {"why", status},
                 {"bad", std::numeric_limits<double>::infinity()}});
  const auto json = nlohmann::json::parse(lines_.at(0));
  EXPECT_EQ(json["ts"], "2026-03-01T12:00:00.000123Z");
  EXPECT_EQ(json["level"], "warn");
  EXPECT_EQ(json["msg"], "x");
  EXPECT_EQ(json["path"], "a\nb\t\"c\"\\");
  EXPECT_EQ(json["n"], -3);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["why"], "NOT_FOUND: no \"such\" file");
  EXPECT_EQ(json["bad"], "inf");
}

// Every single byte and some sequences, as a client might send them: one line stays one line, and
// what is in the JSON parses.
TEST_F(LogTest, ValuesCannotForgeLines) {
  std::vector<std::string> values = {"x\r\n2026 error forged key=1",
                                     "\xe2\x80\xa8",
                                     "\xc2\x85",
                                     "\xed\xa0\x80",
                                     "\xf4\x90\x80\x80",
                                     "\xc0\xaf",
                                     "\xe2\x82",
                                     "a=b",
                                     "k\" x=\"y",
                                     "\x1b[31m",
                                     std::string("a\0b", 3)};
  for (int byte = 0; byte < 256; ++byte) values.push_back(std::string(1, static_cast<char>(byte)));
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    Logger log(Options(format));
    for (const std::string& value : values) {
      lines_.clear();
      log.Info("m", {{"v", value}, {"after", 1}});
      ASSERT_EQ(lines_.size(), 1u);
      const std::string& line = lines_[0];
      EXPECT_EQ(line.back(), '\n');
      for (size_t i = 0; i + 1 < line.size(); ++i) {
        const auto c = static_cast<unsigned char>(line[i]);
        ASSERT_TRUE(c >= 0x20 && c != 0x7f) << line;
      }
      if (format == LogFormat::kJson) {
        EXPECT_FALSE(nlohmann::json::parse(line, nullptr, false).is_discarded()) << line;
      } else {
        EXPECT_TRUE(line.ends_with(" after=1\n")) << line;
      }
    }
  }
}

TEST_F(LogTest, Utf8StaysAndLongValuesAreCut) {
  Logger log(Options(LogFormat::kText));
  log.Info("m", {{"v", "größe 語 🙂"}});
  EXPECT_NE(lines_[0].find("v=\"größe 語 🙂\""), std::string::npos);
  log.Info("m", {{"v", std::string(1 << 20, 'x')}});
  EXPECT_LT(lines_[1].size(), 5000u);
  EXPECT_TRUE(lines_[1].ends_with("x...\"\n"));
}

TEST_F(LogTest, LevelsFilterAndChangeAtRunTime) {
  Logger log(Options(LogFormat::kText, LogLevel::kWarn));
  log.Debug("a");
  log.Info("b");
  log.Warn("c");
  log.Error("d");
  EXPECT_EQ(lines_.size(), 2u);
  EXPECT_FALSE(log.enabled(LogLevel::kInfo));
  log.SetLevel(LogLevel::kDebug);
  log.Debug("e");
  EXPECT_EQ(lines_.size(), 3u);
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    EXPECT_EQ(ParseLogLevel(LogLevelName(level)), level);
  }
  EXPECT_EQ(ParseLogLevel("INFO"), std::nullopt);
}

TEST_F(LogTest, ThreadsWriteWholeLines) {
  Logger log(Options(LogFormat::kJson));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 200; ++i) log.Info("m", {{"id", t * 200 + i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int> ids;
  for (const std::string& line : lines_) ids.insert(nlohmann::json::parse(line)["id"].get<int>());
  EXPECT_EQ(ids.size(), 800u);
}

}  // namespace
}  // namespace hexad
