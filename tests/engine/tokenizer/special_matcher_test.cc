#include "engine/tokenizer/special_matcher.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

TEST(SpecialMatcher, TakesTheLeftmostAndOfThoseTheLongest) {
  SpecialMatcher matcher;
  matcher.Add("<a>", 1);
  matcher.Add("<a><b>", 2);
  matcher.Add("<b>", 3);
  matcher.Add("", 4);
  const auto first = matcher.Find("xx<a><b><b", 0);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->begin, 2u);
  EXPECT_EQ(first->length, 6u);
  EXPECT_EQ(first->id, 2);
  EXPECT_FALSE(matcher.Find("xx<a><b><b", 8).has_value());
  const auto inner = matcher.Find("xx<a><b><b", 3);
  ASSERT_TRUE(inner.has_value());
  EXPECT_EQ(inner->id, 3);
}

TEST(SpecialMatcher, FallsBackToTheLongestCompleteMatch) {
  SpecialMatcher matcher;
  matcher.Add("ab", 1);
  matcher.Add("abcdef", 2);
  const auto match = matcher.Find("abcdex", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->id, 1);
  EXPECT_EQ(match->length, 2u);
}

TEST(SpecialMatcher, EmptyMatcherFindsNothing) {
  EXPECT_FALSE(SpecialMatcher().Find("anything", 0).has_value());
}

}  // namespace
}  // namespace hexad
