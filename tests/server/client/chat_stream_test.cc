#include "server/client/chat_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexad {
namespace {

using ::testing::HasSubstr;
using Kind = ChatPiece::Kind;

TEST(ChatDecoder, Chunks) {
  ChatDecoder decoder;
  ChatPiece piece = decoder.Event(
      R"({"choices":[{"index":0,"delta":{"content":"h\u00e9"},"finish_reason":null}],"usage":null})");
  EXPECT_EQ(piece.kind, Kind::kChunk);
  EXPECT_EQ(piece.text, "hé");
  EXPECT_FALSE(piece.usage.has_value());
  piece = decoder.Event(
      R"({"choices":[{"delta":{"reasoning_content":"hm"},"finish_reason":"length"}]})");
  EXPECT_EQ(piece.reasoning, "hm");
  EXPECT_EQ(piece.finish_reason, "length");
  piece = decoder.Event(
      R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":-2,"prompt_tokens_details":{"cached_tokens":4}}})");
  ASSERT_TRUE(piece.usage.has_value());
  EXPECT_EQ(piece.usage->prompt_tokens, 7);
  EXPECT_EQ(piece.usage->completion_tokens, 0);
  EXPECT_EQ(piece.usage->cached_tokens, 4);
  EXPECT_EQ(decoder.Event(R"({"choices":[{"text":"completion"}]})").text, "completion");
  EXPECT_EQ(decoder.Event("[DONE]").kind, Kind::kDone);
}

TEST(ChatDecoder, ErrorsInEveryForm) {
  ChatDecoder decoder;
  EXPECT_EQ(decoder.Event(R"({"error":{"message":"out of \u001b[2Jroom"}})").message,
            "out of [2Jroom");
  EXPECT_EQ(decoder.Event(R"({"error":"flat"})").message, "flat");
  EXPECT_EQ(decoder.Event(R"({"error":{}})").kind, Kind::kError);
  EXPECT_EQ(decoder.Event(R"({"error":null,"choices":[]})").kind, Kind::kChunk);
}

TEST(ChatDecoder, NonsenseIsNeverFatal) {
  ChatDecoder decoder;
  for (const char* text : {"", "{", "[]", "null", "{\"choices\":", "\xff"}) {
    EXPECT_EQ(decoder.Event(text).kind, Kind::kMalformed) << text;
  }
  for (const char* text :
       {"{}", R"({"choices":{}})", R"({"choices":[1,null]})", R"({"choices":[{"delta":[]}]})",
        R"({"choices":[{"delta":{"content":5},"finish_reason":[]}],"usage":[]})"}) {
    const ChatPiece piece = decoder.Event(text);
    EXPECT_EQ(piece.kind, Kind::kChunk) << text;
    EXPECT_EQ(piece.text, "");
  }
}

TEST(ChatDecoder, WholeAnswers) {
  ChatDecoder decoder;
  const ChatPiece piece = decoder.Answer(
      R"({"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]})");
  EXPECT_EQ(piece.text, "hi");
  EXPECT_EQ(piece.finish_reason, "stop");
}

TEST(ChatStream, ErrorBodiesAndModelLists) {
  EXPECT_EQ(ErrorMessageOf(R"({"error":{"message":"nested"}})"), "nested");
  EXPECT_EQ(ErrorMessageOf(R"({"detail":"flat"})"), "flat");
  EXPECT_EQ(ErrorMessageOf("<html>\x1b"), "<html>");
  EXPECT_EQ(ErrorMessageOf(""), "(no message)");
  EXPECT_EQ(*FirstModelOf(R"({"data":[{"id":"a"},{"id":"b"}]})"), "a");
  for (const char* text : {"", "{}", R"({"data":[]})", R"({"data":[{}]})", "[1]"}) {
    EXPECT_TRUE(absl::IsNotFound(FirstModelOf(text).status())) << text;
  }
}

}  // namespace
}  // namespace hexad
