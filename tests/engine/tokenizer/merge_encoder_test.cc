#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

using testing::ElementsAre;

TEST(MergeEncoder, JoinsByRankNotByPlace) {
  // "bc" outranks "ab" although "ab" comes first in the text.
  const auto tokenizer = *MakeTokenizer(ByteLevelData({"b c", "a b", "a bc"}, "gpt-2"));
  EXPECT_THAT(Pieces(*tokenizer, "abcab"), ElementsAre("abc", "ab"));
}

TEST(MergeEncoder, EqualRanksGoFromTheLeft) {
  const auto tokenizer = *MakeTokenizer(ByteLevelData({"a a"}, "gpt-2"));
  EXPECT_THAT(Pieces(*tokenizer, "aaa"), ElementsAre("aa", "a"));
}

TEST(MergeEncoder, NeverJoinsAcrossWords) {
  const auto tokenizer = *MakeTokenizer(ByteLevelData({"a Ġ", "Ġ b"}, "gpt-2"));
  EXPECT_THAT(Pieces(*tokenizer, "a b"), ElementsAre("a", " b"));
}

TEST(MergeEncoder, PiecesOutsideTheVocabularyLeadOnOrFallApart) {
  TokenizerData data = ByteLevelData({"a b", "ab c", "x y"}, "gpt-2");
  data.tokens[256] = "unused-ab";  // "ab" and "xy" are no tokens any more
  data.tokens[258] = "unused-xy";
  const auto tokenizer = *MakeTokenizer(std::move(data));
  EXPECT_THAT(Pieces(*tokenizer, "abc ab xy"), ElementsAre("abc", " ", "a", "b", " ", "x", "y"));
}

TEST(MergeEncoder, LlamaTakesAWordThatIsATokenWhole) {
  TokenizerData data = ByteLevelData({"a b"}, "llama-bpe");
  data.tokens.emplace_back("abc");  // no merge leads there
  data.types.push_back(TokenType::kNormal);
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "abc"), ElementsAre("abc"));
  data.pre = "gpt-2";
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "abc"), ElementsAre("ab", "c"));
}

TEST(MergeEncoder, AByteWithoutATokenIsDropped) {
  TokenizerData data = ByteLevelData({}, "gpt-2");
  data.tokens[1] = "elsewhere";
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "a\x01z"), ElementsAre("a", "z"));
}

TEST(MergeEncoder, AMegabyteOfOneCharacterIsNotQuadratic) {
  // Would take minutes if each join scanned the text; the test's time limit is the assertion.
  const auto tokenizer =
      *MakeTokenizer(ByteLevelData({"a a", "aa aa", "aaaa aaaa", "Ġ Ġ", "ĠĠ ĠĠ"}, "gpt-2"));
  for (char c : {'a', ' ', '!', '\n'}) {
    const auto tokens = tokenizer->Encode(std::string(1 << 20, c), {});
    ASSERT_TRUE(tokens.ok());
    EXPECT_EQ(Decode(*tokenizer, *tokens).size(), size_t{1} << 20);
  }
}

}  // namespace
}  // namespace hexad
