#include "server/client/sse_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Parse(const std::vector<std::string>& parts, bool* ok = nullptr,
                               size_t limit = 1000) {
  SseParser parser(limit);
  std::vector<std::string> events;
  bool good = true;
  for (const std::string& part : parts) {
    good = parser.Feed(part, [&](const SseEvent& event) {
      events.push_back(event.type.empty() ? event.data : event.type + "|" + event.data);
    });
  }
  if (ok != nullptr) *ok = good;
  return events;
}

TEST(SseParser, EventsFieldsAndComments) {
  EXPECT_THAT(
      Parse({"data: a\n\n: ping\n\ndata:b\ndata:  c\n\nevent: e\ndata\n\nid: 1\nretry: 2\n\n"}),
      ElementsAre("a", "b\n c", "e|"));
}

TEST(SseParser, EveryLineEndAndAByteOrderMark) {
  EXPECT_THAT(Parse({"\xEF\xBB\xBF"
                     "data: a\r\n\r\ndata: b\r\rdata: c\n\n"}),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(Parse({"data: a\r", "\n", "\r", "\n", "data: b\n\n"}), ElementsAre("a", "b"));
}

TEST(SseParser, AnUnfinishedEventIsNeverGiven) {
  EXPECT_THAT(Parse({"data: a\n"}), IsEmpty());
  EXPECT_THAT(Parse({"data: a"}), IsEmpty());
  EXPECT_THAT(Parse({"", "\n\n\n"}), IsEmpty());
}

TEST(SseParser, SizeIsBounded) {
  bool ok = true;
  EXPECT_THAT(Parse({"data: a\n\ndata: " + std::string(2000, 'x')}, &ok), ElementsAre("a"));
  EXPECT_FALSE(ok);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "data: 0123456789\n";
  EXPECT_THAT(Parse({many, "\n", "data: b\n\n"}, &ok), IsEmpty());
  EXPECT_FALSE(ok);
}

TEST(SseParser, AnySplitGivesTheSameEvents) {
  std::mt19937 random(7);
  const std::string alphabet[] = {"data:",       "data: ", "event: x", "\n",   "\r",
                                  "\r\n",        ":",      "z",        "\n\n", std::string(1, '\0'),
                                  "\xEF\xBB\xBF"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += alphabet[random() % std::size(alphabet)];
    const std::vector<std::string> whole = Parse({text});
    std::vector<std::string> parts;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 5;
      parts.push_back(text.substr(at, size));
      at += size;
    }
    EXPECT_EQ(Parse(parts), whole) << round;
  }
}

}  // namespace
}  // namespace hexad
