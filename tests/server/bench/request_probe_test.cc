#include "server/bench/request_probe.h"

#include <gtest/gtest.h>

#include "tests/server/support/fake_openai.h"

namespace hexad {
namespace {

HttpOutcome Ended(TransferEnd end = TransferEnd::kComplete, long status = 200) {
  return {end, status, "why"};
}

TEST(RequestProbe, MeasuresAStream) {
  RequestProbe probe(1.0, true);
  EXPECT_TRUE(probe.OnBody(200, FakeChunk(""), 1.2));  // the role chunk is no token
  EXPECT_TRUE(probe.OnBody(200, FakeChunk("a"), 1.5));
  EXPECT_TRUE(probe.OnBody(200, FakeChunk("b"), 1.75));
  EXPECT_TRUE(
      probe.OnBody(200, FakeChunk("c") + FakeFinish("stop") + FakeUsage(9, 5) + kFakeDone, 2.25));
  const RequestRecord record = probe.Finish(Ended(), 2.5);
  EXPECT_EQ(record.error_kind, "");
  EXPECT_EQ(record.first_token, 1.5);
  EXPECT_EQ(record.end, 2.5);
  EXPECT_EQ(record.gaps, (std::vector<float>{0.25f, 0.5f}));
  EXPECT_TRUE(record.counted_by_usage);
  EXPECT_EQ(record.output_tokens, 5);
  EXPECT_EQ(record.prompt_tokens, 9);
  EXPECT_EQ(record.cached_tokens, 3);
}

TEST(RequestProbe, WithoutUsagePiecesCount) {
  RequestProbe probe(0, true);
  probe.OnBody(200, FakeChunk("a") + FakeChunk("b") + FakeFinish("length"), 1);
  const RequestRecord record = probe.Finish(Ended(), 2);
  EXPECT_EQ(record.error_kind, "");
  EXPECT_FALSE(record.counted_by_usage);
  EXPECT_EQ(record.output_tokens, 2);
}

std::string KindOf(std::string_view body, HttpOutcome outcome, bool stream = true) {
  RequestProbe probe(0, stream);
  probe.OnBody(outcome.status, body, 1);
  return probe.Finish(outcome, 2).error_kind;
}

TEST(RequestProbe, ErrorsByKind) {
  EXPECT_EQ(KindOf(FakeError("x"), Ended(TransferEnd::kComplete, 429)), "http_429");
  EXPECT_EQ(KindOf("", Ended(TransferEnd::kNotConnected, 0)), "connect");
  EXPECT_EQ(KindOf("", Ended(TransferEnd::kBroken, 0)), "connect");
  EXPECT_EQ(KindOf(FakeChunk("a"), Ended(TransferEnd::kBroken)), "broken_stream");
  EXPECT_EQ(KindOf(FakeChunk("a"), Ended()), "broken_stream");
  EXPECT_EQ(KindOf(FakeChunk("a"), Ended(TransferEnd::kTimedOut)), "timeout");
  EXPECT_EQ(KindOf(FakeChunk("a"), Ended(TransferEnd::kAborted)), "aborted");
  EXPECT_EQ(KindOf("data: " + FakeError("lost") + "\n\n", Ended(TransferEnd::kAborted)),
            "error_in_stream");
  EXPECT_EQ(KindOf("data: {\n\n", Ended()), "bad_answer");
  EXPECT_EQ(KindOf("data: " + std::string(5 << 20, 'x'), Ended()), "bad_answer");
  EXPECT_EQ(KindOf("{}", Ended(), false), "bad_answer");
  EXPECT_EQ(KindOf("<html>", Ended(), false), "bad_answer");
}

TEST(RequestProbe, WholeAnswersHaveNoFirstToken) {
  RequestProbe probe(1, false);
  EXPECT_TRUE(probe.OnBody(200, R"({"choices":[{"message":{"content":"hi"},"finish_)", 2));
  EXPECT_TRUE(probe.OnBody(200, R"(reason":"stop"}],"usage":{"completion_tokens":4}})", 3));
  const RequestRecord record = probe.Finish(Ended(), 3);
  EXPECT_EQ(record.error_kind, "");
  EXPECT_EQ(record.first_token, 0);
  EXPECT_EQ(record.output_tokens, 4);
}

}  // namespace
}  // namespace hexad
