#include <gtest/gtest.h>

#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

TEST(RoundTrip, ByteLevelReturnsAnyUnicodeText) {
  for (const char* pre : {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    const auto tokenizer =
        *MakeTokenizer(ByteLevelData({"Ġ a", "a b", "Ġ Ġ", "Ã ©", "ð Ł", "e r", "Ġa b"}, pre));
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const std::string text = RandomText(seed, 300);
      for (bool parse_special : {false, true}) {
        const auto tokens = tokenizer->Encode(text, {.parse_special = parse_special});
        ASSERT_TRUE(tokens.ok()) << tokens.status();
        EXPECT_EQ(Decode(*tokenizer, *tokens), text) << pre << seed;
      }
    }
  }
}

TEST(RoundTrip, ScoresReturnAnyUnicodeText) {
  TokenizerData data = ScoreData({"▁a", "ab", "▁▁", "er", "▁", "a", "b", "é", "🙂"});
  for (bool prefix : {false, true}) {
    data.add_space_prefix = prefix;
    const auto tokenizer = *MakeTokenizer(data);
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const std::string text = RandomText(seed, 300);
      const auto tokens = tokenizer->Encode(text, {});
      ASSERT_TRUE(tokens.ok());
      EXPECT_EQ(Decode(*tokenizer, *tokens), (prefix ? " " : "") + text) << seed;
    }
  }
}

}  // namespace
}  // namespace hexad
