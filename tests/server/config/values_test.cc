#include "server/config/values.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace hexad {
namespace {

TEST(ValuesTest, Bytes) {
  EXPECT_EQ(ParseBytes("0"), 0);
  EXPECT_EQ(ParseBytes("65536"), 65536);
  EXPECT_EQ(ParseBytes("4GiB"), int64_t{4} << 30);
  EXPECT_EQ(ParseBytes("4 GiB"), int64_t{4} << 30);
  EXPECT_EQ(ParseBytes("1.5MiB"), 3 << 19);
  EXPECT_EQ(ParseBytes("500MB"), 500'000'000);
  EXPECT_EQ(ParseBytes("7B"), 7);
  for (const char* bad : {"", "GiB", "-1", "-1GiB", "1.3B", "4Gib", "4 gib", "1e400", "nan", "inf",
                          "9223372036854775807KiB", "99999999999999999999", "0x10", "1GiB1"}) {
    EXPECT_EQ(ParseBytes(bad), std::nullopt) << bad;
  }
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{1000000}, int64_t{3} << 19,
        int64_t{5} << 40, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)), bytes) << FormatBytes(bytes);
  }
  EXPECT_EQ(FormatBytes(int64_t{3} << 19), "1536KiB");
}

TEST(ValuesTest, TimeSpans) {
  EXPECT_EQ(ParseTimeSpan("100ms"), absl::Milliseconds(100));
  EXPECT_EQ(ParseTimeSpan("1h30m"), absl::Minutes(90));
  EXPECT_EQ(ParseTimeSpan("0s"), absl::ZeroDuration());
  for (const char* bad : {"", "100", "0", "-1s", "inf", "1 s", "1x", "ms", "1e999s",
                          "999999999999999999999999999999h"}) {
    EXPECT_EQ(ParseTimeSpan(bad), std::nullopt) << bad;
  }
  for (const absl::Duration duration :
       {absl::ZeroDuration(), absl::Microseconds(1500), absl::Seconds(75), absl::Hours(24)}) {
    EXPECT_EQ(ParseTimeSpan(FormatTimeSpan(duration)), duration) << FormatTimeSpan(duration);
  }
}

TEST(ValuesTest, Addresses) {
  EXPECT_EQ(ParseListenAddress("127.0.0.1:8000"), (ListenAddress{"127.0.0.1", 8000}));
  EXPECT_EQ(ParseListenAddress("[::1]:0"), (ListenAddress{"::1", 0}));
  EXPECT_EQ(ParseListenAddress("localhost:80"), (ListenAddress{"127.0.0.1", 80}));
  for (const char* bad : {"", ":8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:8000",
                          "example.org:1", "1.2.3:1", "[127.0.0.1]:1", "127.0.0.1:-1", "8000"}) {
    EXPECT_EQ(ParseListenAddress(bad), std::nullopt) << bad;
  }
  EXPECT_EQ((ListenAddress{"::1", 8000}).ToString(), "[::1]:8000");
  EXPECT_TRUE((ListenAddress{"127.8.9.1", 1}).IsLoopback());
  EXPECT_TRUE((ListenAddress{"::1", 1}).IsLoopback());
  EXPECT_FALSE((ListenAddress{"0.0.0.0", 1}).IsLoopback());
  EXPECT_FALSE((ListenAddress{"::", 1}).IsLoopback());
  EXPECT_FALSE((ListenAddress{"10.0.0.1", 1}).IsLoopback());
}

TEST(ValuesTest, NearestName) {
  const std::vector<std::string> names = {"keys_file", "models", "workers", "policy"};
  EXPECT_EQ(NearestName("model", names), "models");
  EXPECT_EQ(NearestName("polcy", names), "policy");
  EXPECT_EQ(NearestName("key-file", names), "keys_file");
  EXPECT_EQ(NearestName("banana", names), std::nullopt);
  EXPECT_EQ(NearestName(std::string(1 << 20, 'm'), names), std::nullopt);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
}

}  // namespace
}  // namespace hexad
