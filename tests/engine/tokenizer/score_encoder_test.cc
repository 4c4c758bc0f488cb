#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

using testing::ElementsAre;

TEST(ScoreEncoder, JoinsTheBestScoreFirst) {
  const auto tokenizer = *MakeTokenizer(ScoreData({"bc", "ab", "abc", "a", "b", "c"}));
  EXPECT_THAT(Pieces(*tokenizer, "abcab"), ElementsAre("abc", "ab"));
}

TEST(ScoreEncoder, UnknownCharactersBecomeBytes) {
  const auto tokenizer = *MakeTokenizer(ScoreData({"a"}));
  const auto tokens = tokenizer->Encode("aé", {});
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(Ids(*tokens), ElementsAre(260, 3 + 0xC3, 3 + 0xA9));
  EXPECT_EQ(Decode(*tokenizer, *tokens), "aé");
}

TEST(ScoreEncoder, WithoutByteTokensTheUnknownTokenStandsIn) {
  TokenizerData data = ScoreData({"a"});
  for (TokenType& type : data.types) {
    if (type == TokenType::kByte) type = TokenType::kUnused;
  }
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "a!"), ElementsAre("a", "<unk>"));
}

TEST(ScoreEncoder, SpacePrefixAtTheStartAndAfterSpecialTokens) {
  TokenizerData data = ScoreData({"▁a", "▁", "a"});
  data.add_space_prefix = true;
  const auto tokenizer = *MakeTokenizer(data);
  EXPECT_THAT(Pieces(*tokenizer, "a"), ElementsAre(" a"));
  EXPECT_THAT(Pieces(*tokenizer, " a"), ElementsAre(" ", " a"));
  EXPECT_THAT(Pieces(*tokenizer, "a</s>a", {.parse_special = true}),
              ElementsAre(" a", "</s>", " a"));
  EXPECT_THAT(Pieces(*tokenizer, ""), ElementsAre());
  data.add_space_prefix = false;
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "a a"), ElementsAre("a", " a"));
}

TEST(ScoreEncoder, SpellingAByteOrControlTokenDoesNotMakeIt) {
  // Every prefix is a piece, so that joining could reach the whole spelling.
  const auto tokenizer =
      *MakeTokenizer(ScoreData({"<", "<s", "<0", "<0x", "<0x4", "<0x41", "</s"}));
  for (const char* text : {"<s>", "</s>", "<0x41>", "<unk>"}) {
    const auto tokens = tokenizer->Encode(text, {});
    ASSERT_TRUE(tokens.ok());
    for (int32_t id : Ids(*tokens)) EXPECT_GT(id, 2) << text;
    EXPECT_EQ(Decode(*tokenizer, *tokens), text);
  }
}

TEST(ScoreEncoder, AMegabyteOfOneCharacterIsNotQuadratic) {
  const auto tokenizer =
      *MakeTokenizer(ScoreData({"▁▁▁▁▁▁▁▁", "▁▁▁▁", "▁▁", "▁", "aaaaaaaa", "aaaa", "aa", "a"}));
  for (const char* unit : {" ", "a", "\n", "é"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    const auto tokens = tokenizer->Encode(text, {});
    ASSERT_TRUE(tokens.ok());
    EXPECT_EQ(Decode(*tokenizer, *tokens), text);
  }
}

}  // namespace
}  // namespace hexad
