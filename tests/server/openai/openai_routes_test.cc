#include "server/openai/openai_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/openai/openai_fixture.h"

namespace hexad {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void TwoWords(const GenerateCall& call, TokenSink& sink) {
  sink.OnAccepted(5);
  for (int32_t word = 0; word < 2; ++word) {
    for (int32_t choice = 0; choice < call.num_choices; ++choice) {
      sink.OnDelta(choice, Text(word == 0 ? "Hello" : " world"));
    }
  }
  for (int32_t choice = 0; choice < call.num_choices; ++choice) {
    sink.OnFinish(choice, FinishReason::kStop);
  }
  sink.OnEnd(absl::OkStatus(), {5, 0, 2 * call.num_choices});
}

TEST(OpenAiRoutesTest, WholeChat) {
  OpenAiFixture f;
  f.serving.script = TwoWords;
  const RawResponse response = f.Chat("");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.Header("content-type"), "application/json");
  const json body = json::parse(response.body);
  EXPECT_THAT(body["id"].get<std::string>(), StartsWith("chatcmpl-"));
  EXPECT_EQ(body["created"], 1727346168);
  EXPECT_EQ(body["model"], "small");
  EXPECT_EQ(body["system_fingerprint"], "fp_test");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "Hello world");
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  const auto started = f.serving.calls.Take();
  EXPECT_EQ(started->call.tenant, "tenant-a");
  EXPECT_EQ(started->call.request_id, response.Header("x-request-id"));
}

TEST(OpenAiRoutesTest, StreamOfTwoChoicesWithUsage) {
  OpenAiFixture f;
  f.serving.script = TwoWords;
  const RawResponse response =
      f.Chat(R"("n":2,"stream":true,"stream_options":{"include_usage":true})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.Header("content-type"), "text/event-stream");
  EXPECT_EQ(response.Header("x-accel-buffering"), "no");
  EXPECT_TRUE(response.body_ended);
  std::vector<std::string> events = ReadEvents(response.body);
  ASSERT_EQ(events.size(), 2u * 4 + 2);
  EXPECT_EQ(events.back(), "[DONE]");
  events.pop_back();
  const json usage = json::parse(events.back());
  EXPECT_EQ(usage["choices"], json::array());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 4);
  events.pop_back();
  std::vector<std::string> contents(2);
  std::vector<int> seen(2);
  for (const std::string& event : events) {
    const json chunk = json::parse(event);
    EXPECT_EQ(chunk["id"], usage["id"]);
    EXPECT_EQ(chunk["created"], usage["created"]);
    EXPECT_TRUE(chunk.at("usage").is_null());
    const json& choice = chunk["choices"][0];
    const size_t index = choice["index"];
    const json& delta = choice["delta"];
    EXPECT_EQ(delta.contains("role"), seen[index] == 0) << event;
    EXPECT_EQ(choice.at("finish_reason").is_null(), seen[index] < 3) << event;
    if (seen[index] == 3) {
      EXPECT_EQ(delta, json::object());
    }
    contents[index] += delta.value("content", "");
    ++seen[index];
  }
  EXPECT_EQ(contents, (std::vector<std::string>{"Hello world", "Hello world"}));
}

TEST(OpenAiRoutesTest, StreamWithoutUsageHasNone) {
  OpenAiFixture f;
  f.serving.script = TwoWords;
  const RawResponse response = f.Chat(R"("stream":true)");
  EXPECT_EQ(response.body.find("usage"), std::string::npos);
  EXPECT_EQ(ReadEvents(response.body).size(), 5u);
}

TEST(OpenAiRoutesTest, EmptyAnswersStillHaveRoleAndReason) {
  OpenAiFixture f;
  f.serving.script = [](const GenerateCall&, TokenSink& sink) {
    sink.OnAccepted(1);
    sink.OnDelta(0, Text(""));
    sink.OnFinish(0, FinishReason::kLength);
    sink.OnEnd(absl::OkStatus(), {1, 0, 1});
  };
  const auto events = ReadEvents(f.Chat(R"("stream":true)").body);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(json::parse(events[1])["choices"][0]["finish_reason"], "length");
}

TEST(OpenAiRoutesTest, ErrorsBeforeAdmissionHaveTheirStatus) {
  OpenAiFixture f;
  f.serving.script = [](const GenerateCall&, TokenSink& sink) {
    sink.OnEnd(
        WithParam(absl::InvalidArgumentError("too long"), "messages", "context_length_exceeded"),
        {});
  };
  for (const char* members : {"", R"("stream":true)"}) {
    const RawResponse response = f.Chat(members);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(json::parse(response.body), json::parse(R"({"error":{"message":"too long",
        "type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}})"));
  }
}

TEST(OpenAiRoutesTest, RefusalsByLoadSayWhenToRetry) {
  OpenAiFixture f;
  f.serving.script = [](const GenerateCall& call, TokenSink& sink) {
    const absl::Status status = call.num_choices == 1 ? absl::UnavailableError("queue full")
                                                      : absl::ResourceExhaustedError("quota");
    sink.OnEnd(WithRetryAfter(status, 7), {});
  };
  const RawResponse load = f.Chat(R"("stream":true)");
  EXPECT_EQ(load.status, 503);
  EXPECT_EQ(load.Header("retry-after"), "7");
  const RawResponse quota = f.Chat(R"("n":2)");
  EXPECT_EQ(quota.status, 429);
  EXPECT_EQ(quota.Header("retry-after"), "7");
}

TEST(OpenAiRoutesTest, ErrorsInAStreamAreTheLastEvent) {
  OpenAiFixture f;
  f.serving.script = [](const GenerateCall&, TokenSink& sink) {
    sink.OnAccepted(1);
    sink.OnDelta(0, Text("Hel"));
    sink.OnFinish(0, FinishReason::kFailed);
    sink.OnEnd(absl::InternalError("secret address 10.0.0.1"), {});
  };
  const RawResponse response = f.Chat(R"("stream":true,"stream_options":{"include_usage":true})");
  EXPECT_EQ(response.status, 200);
  const auto events = ReadEvents(response.body);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(json::parse(events[2])["error"]["code"], "internal_error");
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
  EXPECT_EQ(response.body.find("\"finish_reason\":\"s"), std::string::npos);
  EXPECT_EQ(f.Chat("").status, 500);
}

TEST(OpenAiRoutesTest, ChoicesWithoutAReasonAreAnError) {
  OpenAiFixture f;
  f.serving.script = [](const GenerateCall&, TokenSink& sink) {
    sink.OnAccepted(1);
    sink.OnFinish(0, FinishReason::kStop);
    sink.OnEnd(absl::OkStatus(), {});
  };
  EXPECT_EQ(f.Chat(R"("n":2)").status, 500);
  EXPECT_THAT(f.Chat(R"("n":2,"stream":true)").body, HasSubstr("\"error\""));
}

TEST(OpenAiRoutesTest, Completions) {
  OpenAiFixture f;
  f.serving.script = TwoWords;
  const RawResponse whole = f.Post("/v1/completions", R"({"model":"small","prompt":"x"})");
  EXPECT_THAT(whole.body, HasSubstr(R"("text":"Hello world")"));
  EXPECT_THAT(whole.body, StartsWith(R"({"id":"cmpl-)"));
  const RawResponse stream =
      f.Post("/v1/completions", R"({"model":"small","prompt":[1,2],"stream":true})");
  const auto events = ReadEvents(stream.body);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(json::parse(events[1])["choices"][0]["text"], " world");
  EXPECT_EQ(json::parse(events[2])["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json::parse(events[2])["object"], "text_completion");
}

TEST(OpenAiRoutesTest, KeysAreAskedForBeforeBodies) {
  OpenAiFixture f;
  for (const char* headers : {"", "Authorization: Bearer bad\r\n"}) {
    for (const auto& response :
         {f.Post("/v1/chat/completions", "not json", headers), f.Get("/v1/models", headers),
          f.Get("/v1/models/small", headers), f.Post("/v1/completions", "{", headers)}) {
      EXPECT_EQ(response.status, 401);
      EXPECT_EQ(response.Header("www-authenticate"), "Bearer");
      EXPECT_EQ(json::parse(response.body)["error"]["code"], "invalid_api_key");
    }
  }
  EXPECT_EQ(f.serving.calls.size(), 0u);
}

TEST(OpenAiRoutesTest, BadRequestsNeverStart) {
  OpenAiFixture f;
  const RawResponse range = f.Chat(R"("temperature":9)");
  EXPECT_EQ(range.status, 400);
  EXPECT_EQ(json::parse(range.body)["error"]["param"], "temperature");
  EXPECT_EQ(f.Post("/v1/chat/completions", "{").status, 400);
  EXPECT_EQ(f.Post("/v1/chat/completions", R"({"model":"m","messages":[]})").status, 400);
  EXPECT_EQ(f.serving.calls.size(), 0u);
}

TEST(OpenAiRoutesTest, WorkflowHeadersReachTheCall) {
  OpenAiFixture f;
  f.serving.script = TwoWords;
  const char body[] = R"({"model":"small","messages":[{"role":"user","content":"hi"}]})";
  f.Post("/v1/chat/completions", body,
         "Authorization: Bearer good\r\nX-Hexad-Workflow: w\r\nX-Hexad-Parents: a, b\r\n");
  const auto started = f.serving.calls.Take();
  EXPECT_EQ(started->call.workflow.workflow, "w");
  EXPECT_EQ(started->call.workflow.parents.size(), 2u);
  EXPECT_EQ(started->call.workflow.source, "header");
}

TEST(OpenAiRoutesTest, Models) {
  OpenAiFixture f;
  EXPECT_EQ(json::parse(f.Get("/v1/models").body), json::parse(R"({"object":"list","data":[
      {"id":"org/model","object":"model","created":1700000000,"owned_by":"hexad",
       "max_model_len":8192},
      {"id":"small","object":"model","created":1700000001,"owned_by":"hexad",
       "max_model_len":512}]})"));
  EXPECT_EQ(json::parse(f.Get("/v1/models/org/model").body)["id"], "org/model");
  EXPECT_EQ(json::parse(f.Get("/v1/models/org%2Fmodel").body)["id"], "org/model");
  const RawResponse unknown = f.Get("/v1/models/nope");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body)["error"]["code"], "model_not_found");
}

TEST(OpenAiRoutesTest, OperationalRoutes) {
  OpenAiFixture f;
  const auto status = [&](std::string_view path) { return f.Get(path, "").status; };
  EXPECT_EQ(status("/health"), 200);
  EXPECT_EQ(f.Get("/version", "").body, R"({"version":"1.2.3"})");
  const RawResponse metrics = f.Get("/metrics", "");
  EXPECT_EQ(metrics.body, "hexad_up 1\n");
  EXPECT_THAT(metrics.Header("content-type"), StartsWith("text/plain; version=0.0.4"));
  f.serving.current = ServingState::kStarting;
  EXPECT_EQ(status("/health"), 503);
  EXPECT_EQ(status("/ready"), 503);
  EXPECT_EQ(status("/live"), 200);
  f.serving.current = ServingState::kDraining;
  EXPECT_EQ(f.Get("/ready", "").body, R"({"status":"draining"})");
  f.serving.current = ServingState::kFailed;
  EXPECT_EQ(status("/health"), 503);
  EXPECT_EQ(status("/live"), 503);
}

TEST(OpenAiRoutesTest, MetricsMayNeedAKey) {
  OpenAiOptions options;
  options.metrics_need_key = true;
  OpenAiFixture f(std::move(options));
  EXPECT_EQ(f.Get("/metrics", "").status, 401);
  EXPECT_EQ(f.Get("/metrics").status, 200);
}

}  // namespace
}  // namespace hexad
