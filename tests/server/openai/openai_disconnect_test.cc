// Clients that leave, servers that stop: the call is cancelled, and late tokens harm nobody.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/openai/openai_fixture.h"

namespace hexad {
namespace {

constexpr char kBody[] = R"({"model":"small","messages":[{"role":"user","content":"hi"}]})";
constexpr char kStreamBody[] =
    R"({"model":"small","stream":true,"messages":[{"role":"user","content":"hi"}]})";
constexpr char kKey[] = "Authorization: Bearer good\r\n";

void EndAfterCancel(OpenAiFixture* f, const FakeServing::Started& started) {
  EXPECT_EQ(f->serving.cancelled.Take(), started.id);
  started.sink->OnDelta(0, Text("late"));
  started.sink->OnFinish(0, FinishReason::kCancelled);
  started.sink->OnEnd(absl::CancelledError("client gone"), {});
  EXPECT_EQ(f->serving.cancelled.size(), 0u);
}

TEST(OpenAiDisconnectTest, WaitingClients) {
  OpenAiFixture f;
  for (const char* body : {kBody, kStreamBody}) {
    RawClient client = f.Client();
    client.Post("/v1/chat/completions", body, kKey);
    const auto started = f.serving.calls.Take();
    ASSERT_TRUE(started.has_value());
    client.Close();
    EndAfterCancel(&f, *started);
  }
}

TEST(OpenAiDisconnectTest, MidStream) {
  OpenAiFixture f;
  for (const bool reset : {false, true}) {
    RawClient client = f.Client();
    client.Post("/v1/chat/completions", kStreamBody, kKey);
    const auto started = f.serving.calls.Take();
    ASSERT_TRUE(started.has_value());
    started->sink->OnAccepted(1);
    started->sink->OnDelta(0, Text("first"));
    ASSERT_TRUE(client.ReadUntil("first"));
    if (reset) {
      client.Reset();
    } else {
      client.Close();
    }
    EndAfterCancel(&f, *started);
  }
}

TEST(OpenAiDisconnectTest, AnsweredCallsAreNotCancelled) {
  OpenAiFixture f;
  RawClient client = f.Client();
  client.Post("/v1/chat/completions", kBody, kKey);
  const auto started = f.serving.calls.Take();
  started->sink->OnAccepted(1);
  started->sink->OnFinish(0, FinishReason::kStop);
  started->sink->OnEnd(absl::OkStatus(), {});
  EXPECT_EQ(client.ReadResponse().status, 200);
  client.Close();
  f.server->Stop(absl::Seconds(20));
  EXPECT_EQ(f.serving.cancelled.size(), 0u);
}

TEST(OpenAiDisconnectTest, StoppingTellsTheStream) {
  OpenAiFixture f;
  RawClient client = f.Client();
  client.Post("/v1/chat/completions", kStreamBody, kKey);
  const auto started = f.serving.calls.Take();
  started->sink->OnAccepted(1);
  started->sink->OnDelta(0, Text("first"));
  f.server->Stop(absl::Milliseconds(10));
  const RawResponse response = client.ReadResponse();
  const auto events = ReadEvents(response.body);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(events[2])["error"]["code"], "overloaded");
  EndAfterCancel(&f, *started);
}

TEST(OpenAiDisconnectTest, SilentStreamsArePinged) {
  OpenAiOptions options;
  options.stream_keep_alive = absl::Milliseconds(20);
  OpenAiFixture f(std::move(options));
  RawClient client = f.Client();
  client.Post("/v1/chat/completions", kStreamBody, kKey);
  const auto started = f.serving.calls.Take();
  started->sink->OnAccepted(1);
  EXPECT_TRUE(client.ReadUntil(": ping\n\n"));
  started->sink->OnFinish(0, FinishReason::kStop);
  started->sink->OnEnd(absl::OkStatus(), {});
  EXPECT_TRUE(client.ReadUntil("data: [DONE]\n\n"));
}

TEST(OpenAiDisconnectTest, ASinkThatIsDroppedAnswers500) {
  OpenAiFixture f;
  RawClient client = f.Client();
  client.Post("/v1/chat/completions", kBody, kKey);
  f.serving.calls.Take();  // and drops it
  EXPECT_EQ(client.ReadResponse().status, 500);
}

}  // namespace
}  // namespace hexad
