#include "engine/tokenizer/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

using testing::ElementsAre;

std::vector<std::string> Words(std::string_view name, std::string_view text) {
  const auto words = Pretokenizer::Make(name)->Split(text);
  if (!words.ok()) return {words.status().ToString()};
  return {words->begin(), words->end()};
}

TEST(Pretokenizer, CutsAsEachModelDoes) {
  EXPECT_THAT(Words("gpt-2", "I'm 123  ok!\n"),
              ElementsAre("I", "'m", " 123", " ", " ok", "!", "\n"));
  EXPECT_THAT(Words("smollm", "a 123"), ElementsAre("a", " ", "1", "2", "3"));
  EXPECT_THAT(Words("llama-bpe", "I'M 12345 (x)\n\n y"),
              ElementsAre("I", "'M", " ", "123", "45", " (", "x", ")\n\n", " y"));
  EXPECT_THAT(Words("qwen2", "a 123"), ElementsAre("a", " ", "1", "2", "3"));
  EXPECT_THAT(Words("default", "ab=12345"), ElementsAre("ab", "=", "123", "45"));
  EXPECT_THAT(Words("gpt-4o", "HelloWorld"), ElementsAre("Hello", "World"));
}

TEST(Pretokenizer, UnicodeSpacesCountAsSpaces) {
  EXPECT_THAT(Words("gpt-2", "a\u00a0\u00a0b"), ElementsAre("a", "\u00a0", "\u00a0", "b"));
}

TEST(Pretokenizer, UnknownNamesAreRefused) {
  const auto made = Pretokenizer::Make("no-such");
  EXPECT_EQ(made.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(made.status().message()), testing::HasSubstr("qwen2"));
}

TEST(Pretokenizer, CoversEveryByteInOrder) {
  for (const char* name : {"default", "gpt-2", "smollm", "llama3", "qwen2", "gpt-4o"}) {
    const auto pretokenizer = Pretokenizer::Make(name);
    ASSERT_TRUE(pretokenizer.ok());
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::string text = RandomText(seed, 200);
      const auto words = pretokenizer->Split(text);
      ASSERT_TRUE(words.ok());
      std::string joined;
      for (std::string_view word : *words) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      EXPECT_EQ(joined, text) << name;
    }
  }
}

TEST(Pretokenizer, LongRunsStayWithinTheEnginesLimits) {
  for (const char* name : {"default", "gpt-2", "llama3", "qwen2", "gpt-4o"}) {
    const auto pretokenizer = Pretokenizer::Make(name);
    for (const char* unit : {" ", "a", "!", "한"}) {
      std::string text;
      while (text.size() < (1 << 20)) text += unit;
      const auto words = pretokenizer->Split(text + "x");
      EXPECT_TRUE(words.ok()) << name << unit << words.status();
    }
  }
}

}  // namespace
}  // namespace hexad
