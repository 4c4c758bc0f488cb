#include "engine/tokenizer/tokenizer_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void ExpectRefused(TokenizerData data, const std::function<void(TokenizerData&)>& break_it,
                   const char* message) {
  break_it(data);
  const auto made = MakeTokenizer(std::move(data));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_THAT(std::string(made.status().message()), HasSubstr(message));
}

TEST(TokenizerData, WhatDoesNotFitTogetherIsRefused) {
  const TokenizerData merge = ByteLevelData({"a b"}, "gpt-2");
  const TokenizerData score = ScoreData({"a"});
  ExpectRefused(
      merge, [](auto& d) { d.tokens.clear(); }, "empty");
  ExpectRefused(
      merge, [](auto& d) { d.types.pop_back(); }, "token types");
  ExpectRefused(
      score, [](auto& d) { d.scores.pop_back(); }, "scores");
  ExpectRefused(
      score, [](auto& d) { d.scores.clear(); }, "scores");
  ExpectRefused(
      score, [](auto& d) { d.scores[7] = NAN; }, "not a number");
  ExpectRefused(
      merge, [](auto& d) { d.bos = 100000; }, "beginning-of-sequence token 100000");
  ExpectRefused(
      merge, [](auto& d) { d.eos = -2; }, "end-of-sequence");
  ExpectRefused(
      merge, [](auto& d) { d.unknown = 1 << 30; }, "unknown");
  ExpectRefused(
      merge, [](auto& d) { d.end_of_generation = {99999}; }, "end-of-generation");
  for (const char* bad : {"", " ", "ab", "a ", " b"}) {
    ExpectRefused(
        merge, [&](auto& d) { d.merges[0] = bad; }, "merge 0");
  }
}

TEST(TokenizerData, DuplicatesAreTolerated) {
  TokenizerData data = ByteLevelData({"a b", "a b"}, "gpt-2");
  const auto tokenizer = MakeTokenizer(std::move(data));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Pieces(**tokenizer, "ab"), ElementsAre("ab"));
}

TEST(Tokenizer, ControlTokensComeOnlyFromParsedText) {
  const auto tokenizer = *MakeTokenizer(ByteLevelData({}, "gpt-2"));
  EXPECT_EQ(Pieces(*tokenizer, "a<|end|>").size(), 8u);
  EXPECT_THAT(Pieces(*tokenizer, "a<|end|>", {.parse_special = true}), ElementsAre("a", "<|end|>"));
  EXPECT_THAT(Pieces(*tokenizer, "a<keep>b"), ElementsAre("a", "<keep>", "b"));
}

TEST(Tokenizer, AddSpecialIsTheModelsOwnChoice) {
  TokenizerData data = ByteLevelData({}, "gpt-2");
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "a", {.add_special = true}),
              ElementsAre("<|end|>", "a"));
  data.add_bos = false;
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "a", {.add_special = true}), ElementsAre("a"));
  data.add_bos = true;
  data.bos = -1;
  EXPECT_THAT(Pieces(**MakeTokenizer(data), "a", {.add_special = true}), ElementsAre("a"));
}

TEST(Tokenizer, EndOfGenerationIsEosAndKnownControlTokens) {
  TokenizerData data = ByteLevelData({}, "gpt-2");
  data.end_of_generation = {5};
  auto tokenizer = *MakeTokenizer(data);
  EXPECT_THAT(Ids(tokenizer->end_of_generation()), ElementsAre(5, 256, 257));
  data.types[257] = TokenType::kNormal;  // "<|im_end|>" as ordinary text ends nothing
  tokenizer = *MakeTokenizer(data);
  EXPECT_THAT(Ids(tokenizer->end_of_generation()), ElementsAre(5, 256));
}

TEST(Tokenizer, InvalidUtf8IsAnErrorWithItsPlace) {
  const auto tokenizer = *MakeTokenizer(ByteLevelData({}, "gpt-2"));
  const auto tokens = tokenizer->Encode("ab\xFF", {});
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokens.status().message()), HasSubstr("byte 2"));
}

TEST(Tokenizer, RendersSpecialTokensOnlyWhenAsked) {
  const auto tokenizer = *MakeTokenizer(ByteLevelData({}, "gpt-2"));
  EXPECT_EQ(tokenizer->TokenBytes(tokenizer->bos()), "");
  EXPECT_EQ(tokenizer->TokenBytes(tokenizer->bos(), true), "<|end|>");
  EXPECT_EQ(tokenizer->bos_text(), "<|end|>");
  EXPECT_EQ(tokenizer->eos_text(), "<|end|>");
  EXPECT_EQ(tokenizer->vocab_size(), 259);
}

}  // namespace
}  // namespace hexad
