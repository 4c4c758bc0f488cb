#include "server/serving/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hexad {
namespace {

TEST(StopMatcherTest, HoldsBackAPossiblePrefixAndDropsTheStop) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.Push("abcE").text, "abc");
  EXPECT_EQ(matcher.Push("N").text, "");
  EXPECT_EQ(matcher.Push("x\n").text, "ENx");
  const StopMatcher::Result result = matcher.Push("\nrest");
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.text, "");
}

TEST(StopMatcherTest, FlushReturnsWhatWasHeld) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.Push("abcEN").text, "abc");
  EXPECT_EQ(matcher.Flush(), "EN");
  EXPECT_EQ(matcher.Flush(), "");
}

// Whatever the split, the text is that of a search in the whole; two-letter alphabets make overlaps
// and false starts frequent.
TEST(StopMatcherTest, EverySplitGivesTheSameText) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    const auto word = [&](size_t length) {
      std::string text(length, 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 2);
      return text;
    };
    std::vector<std::string> stops;
    for (uint64_t i = 0; i < 1 + random() % 3; ++i) stops.push_back(word(1 + random() % 6));
    const std::string text = word(random() % 40);
    size_t first = std::string::npos;
    for (const std::string& stop : stops) first = std::min(first, text.find(stop));

    StopMatcher matcher(stops);
    std::string seen;
    bool stopped = false;
    for (size_t at = 0; at < text.size() && !stopped;) {
      const size_t length = 1 + random() % 4;
      const StopMatcher::Result result = matcher.Push(std::string_view(text).substr(at, length));
      seen += result.text;
      stopped = result.stopped;
      at += length;
      EXPECT_TRUE(text.compare(0, seen.size(), seen) == 0) << "seed " << seed;
    }
    if (!stopped) seen += matcher.Flush();
    // A longer stop string that starts earlier may complete later than a shorter one, so the cut
    // is where the first complete one starts: never after the first occurrence found in the whole.
    EXPECT_EQ(stopped, first != std::string::npos) << "seed " << seed;
    if (stopped) {
      EXPECT_GE(seen.size(), first) << "seed " << seed;
    } else {
      EXPECT_EQ(seen, text) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace hexad
