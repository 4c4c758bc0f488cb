#include "server/openai/json_check.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

TEST(JsonCheckTest, ValidTexts) {
  for (const char* text :
       {"{}", "[]", " [1, -0.5e+3, true,false,null,\"\\u00e9\\ud83c\\udf89\\n\"] ", "0", "\"é\"",
        "{\"a\":{\"b\":[{}]}}", "-0", "10.25E7"}) {
    const auto error = FindJsonError(text, 8);
    EXPECT_FALSE(error.has_value()) << text << ": " << error->what;
  }
}

TEST(JsonCheckTest, ErrorsHaveTheirPlace) {
  const std::pair<std::string, size_t> cases[] = {
      {"", 0},
      {"{", 1},
      {"{]", 1},
      {"{\"a\" 1}", 5},
      {"{\"a\":}", 5},
      {"[1,]", 3},
      {"[1 2]", 3},
      {"{} x", 3},
      {"tru", 0},
      {"[01]", 2},
      {"[1.]", 3},
      {"[1e]", 3},
      {"\"a", 2},
      {"\"\\x\"", 2},
      {"\"\\u12g4\"", 5},
      {"\"\\ud800\"", 7},
      {"\"\\udc00\"", 7},
      {"\"a\nb\"", 2},
      {"\"a\xff\"", 2},
      {"{'a':1}", 1},
      {"[NaN]", 1},
      {"\xEF\xBB\xBF{}", 0},
  };
  for (const auto& [text, offset] : cases) {
    const auto error = FindJsonError(text, 8);
    ASSERT_TRUE(error.has_value()) << text;
    EXPECT_EQ(error->offset, offset) << text << ": " << error->what;
    EXPECT_FALSE(error->what.empty());
  }
}

TEST(JsonCheckTest, DepthIsBounded) {
  EXPECT_FALSE(FindJsonError("[[[]]]", 3).has_value());
  EXPECT_TRUE(FindJsonError("[[[[]]]]", 3).has_value());
  EXPECT_TRUE(FindJsonError(std::string(1 << 20, '['), 128).has_value());
}

}  // namespace
}  // namespace hexad
