#include "server/http/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexad {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WireTest, HeadOfAWholeAnswer) {
  const HttpHeaders headers = {{"retry-after", "3"}};
  const std::string head = FormatHead({.status = 503,
                                       .content_type = "application/json",
                                       .headers = &headers,
                                       .request_id = "r1",
                                       .length = 12,
                                       .keep_alive = false},
                                      absl::FromUnixSeconds(784111777));
  EXPECT_EQ(head,
            "HTTP/1.1 503 Service Unavailable\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "content-type: application/json\r\ncontent-length: 12\r\nconnection: close\r\n"
            "x-request-id: r1\r\nretry-after: 3\r\n\r\n");
}

TEST(WireTest, HeaderValuesCannotAddLines) {
  const HttpHeaders headers = {{"x-name", std::string("a\r\nevil: 1\0b", 12)}};
  const std::string head = FormatHead({.headers = &headers}, absl::UnixEpoch());
  EXPECT_THAT(head, HasSubstr("x-name: aevil: 1b\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("\nevil")));
}

TEST(WireTest, TargetsSplit) {
  std::string path, query;
  SplitTarget("/v1/models?a=1&b=?", &path, &query);
  EXPECT_EQ(path, "/v1/models");
  EXPECT_EQ(query, "a=1&b=?");
  SplitTarget("http://host:8000/health#top", &path, &query);
  EXPECT_EQ(path, "/health");
  EXPECT_EQ(query, "");
  SplitTarget("http://host", &path, &query);
  EXPECT_EQ(path, "/");
  SplitTarget("*", &path, &query);
  EXPECT_EQ(path, "*");
}

TEST(WireTest, RequestIdsAreShortAndPrintable) {
  EXPECT_TRUE(IsSaneRequestId("req-1"));
  EXPECT_TRUE(IsSaneRequestId(std::string(128, 'a')));
  EXPECT_FALSE(IsSaneRequestId(std::string(129, 'a')));
  EXPECT_FALSE(IsSaneRequestId(""));
  EXPECT_FALSE(IsSaneRequestId("a b"));
  EXPECT_FALSE(IsSaneRequestId("a\x7f"));
  EXPECT_FALSE(IsSaneRequestId("\xc3\xa9"));
}

TEST(WireTest, JsonContentTypes) {
  EXPECT_TRUE(IsJsonContentType("application/json"));
  EXPECT_TRUE(IsJsonContentType("Application/JSON ; charset=utf-8"));
  EXPECT_FALSE(IsJsonContentType(""));
  EXPECT_FALSE(IsJsonContentType("text/plain"));
  EXPECT_FALSE(IsJsonContentType("application/json-seq"));
}

}  // namespace
}  // namespace hexad
