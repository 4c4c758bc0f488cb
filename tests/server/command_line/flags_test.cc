#include "server/command_line/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Options {
  std::string url = "http://localhost";
  int64_t requests = 10;
  double rate = 1.5;
  bool stream = true;
};

FlagSet MakeFlags(Options& options) {
  FlagSet flags("hexad x [options]", "Does x.", "  hexad x --rate 2\n");
  flags.Add("url", &options.url, "URL", "where");
  flags.Add("requests", &options.requests, "N", "how many");
  flags.Add("rate", &options.rate, "R", "per second");
  flags.Add("stream", &options.stream, "stream the answers");
  return flags;
}

std::string Error(const std::vector<std::string>& args) {
  Options options;
  const auto parsed = MakeFlags(options).Parse(args);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(Flags, ReadsBothFormsAndPositionals) {
  Options options;
  const std::vector<std::string> args = {
      "a",    "--url=http://h?x=1", "--requests", "7", "b", "--no-stream", "--rate", "0.25", "--",
      "--url"};
  const auto parsed = MakeFlags(options).Parse(args);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->positional, ElementsAre("a", "b", "--url"));
  EXPECT_EQ(options.url, "http://h?x=1");
  EXPECT_EQ(options.requests, 7);
  EXPECT_EQ(options.rate, 0.25);
  EXPECT_FALSE(options.stream);
}

TEST(Flags, NamesWhatIsWrong) {
  EXPECT_THAT(Error({"--requets", "7"}), HasSubstr("did you mean --requests?"));
  EXPECT_THAT(Error({"--zzzzzzzzz"}), HasSubstr("unknown option --zzzzzzzzz"));
  EXPECT_THAT(Error({"--requests", "7.5"}), HasSubstr("whole number, not \"7.5\""));
  EXPECT_THAT(Error({"--requests", "99999999999999999999"}), HasSubstr("whole number"));
  EXPECT_THAT(Error({"--rate", "nan"}), HasSubstr("a number"));
  EXPECT_THAT(Error({"--rate"}), HasSubstr("wants a value"));
  EXPECT_THAT(Error({"--stream=yes"}), HasSubstr("takes no value"));
  EXPECT_THAT(Error({"--no-url"}), HasSubstr("unknown option"));
  EXPECT_THAT(Error({"-x"}), HasSubstr("options are long"));
  EXPECT_EQ(Error({"-"}), "");  // the usual name of standard input is a positional
}

TEST(Flags, HelpShowsDefaultsAndExamplesAndWinsOverErrors) {
  Options options;
  const FlagSet flags = MakeFlags(options);
  EXPECT_THAT(flags.Help(), HasSubstr("--requests N"));
  EXPECT_THAT(flags.Help(), HasSubstr("how many [10]"));
  EXPECT_THAT(flags.Help(), HasSubstr("Examples:\n  hexad x --rate 2"));
  EXPECT_EQ(flags.Help().back(), '\n');
  const std::vector<std::string> args = {"--nonsense", "--help"};
  const auto parsed = flags.Parse(args);
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->help);
}

TEST(Flags, LengthsOfTime) {
  EXPECT_EQ(ParseSeconds("90").value(), 90);
  EXPECT_EQ(ParseSeconds("1.5m").value(), 90);
  EXPECT_EQ(ParseSeconds("250ms").value(), 0.25);
  EXPECT_EQ(ParseSeconds("2h").value(), 7200);
  for (const char* bad : {"", "s", "-1s", "1d", "inf", "1e300h", "ms"}) {
    EXPECT_FALSE(ParseSeconds(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace hexad
