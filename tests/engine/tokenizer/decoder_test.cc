#include <gtest/gtest.h>

#include <random>

#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/utf8.h"
#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

// Tokens are bytes: the token id is the byte.
class IncrementalDecoderTest : public testing::Test {
 protected:
  IncrementalDecoderTest() : tokenizer_(*MakeTokenizer(ByteLevelData({}, "gpt-2"))) {}
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(IncrementalDecoderTest, HoldsACharacterBackUntilItIsWhole) {
  IncrementalDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.Push(TokenId{'a'}), "a");
  EXPECT_EQ(decoder.Push(TokenId{0xF0}), "");
  EXPECT_EQ(decoder.Push(TokenId{0x9F}), "");
  EXPECT_EQ(decoder.Push(TokenId{0x99}), "");
  EXPECT_EQ(decoder.Push(TokenId{0x82}), "🙂");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST_F(IncrementalDecoderTest, BytesThatCanNoLongerBecomeValidAreReplaced) {
  IncrementalDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.Push(TokenId{0xE2}), "");
  EXPECT_EQ(decoder.Push(TokenId{0x82}), "");
  EXPECT_EQ(decoder.Push(TokenId{'x'}), "\xEF\xBF\xBDx");  // one for the whole bad beginning
  EXPECT_EQ(decoder.Push(TokenId{0x80}), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.Push(TokenId{0xC3}), "");
  EXPECT_EQ(decoder.Flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.Flush(), "");
}

TEST_F(IncrementalDecoderTest, ControlAndUnknownIdsAddNothing) {
  IncrementalDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.Push(tokenizer_->bos()), "");
  EXPECT_EQ(decoder.Push(TokenId{100000}), "");
  EXPECT_EQ(decoder.Push(TokenId{-1}), "");
}

TEST_F(IncrementalDecoderTest, AnySplitGivesTheSameText) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = RandomText(seed, 60);
    std::vector<TokenId> tokens;
    for (char c : text) tokens.push_back(TokenId{static_cast<uint8_t>(c)});
    IncrementalDecoder decoder(*tokenizer_);
    std::string decoded;
    for (TokenId token : tokens) {
      decoded += decoder.Push(token);
      ASSERT_EQ(FindInvalidUtf8(decoded), decoded.size());
    }
    EXPECT_EQ(decoded + decoder.Flush(), text);
  }
}

TEST_F(IncrementalDecoderTest, RandomBytesNeverLeaveInvalidText) {
  std::mt19937_64 random(5);
  IncrementalDecoder decoder(*tokenizer_);
  std::string decoded;
  for (int i = 0; i < 20000; ++i)
    decoded += decoder.Push(TokenId{static_cast<int>(random() % 256)});
  decoded += decoder.Flush();
  EXPECT_EQ(FindInvalidUtf8(decoded), decoded.size());
}

}  // namespace
}  // namespace hexad
