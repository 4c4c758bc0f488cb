#include "server/openai/answer_format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/server/openai/openai_fixture.h"

namespace hexad {
namespace {

using nlohmann::json;

AnswerIdentity Identity(AnswerKind kind = AnswerKind::kChat) {
  return {.kind = kind, .id = "id-1", .created_unix = 7, .model = "m \"q\""};
}

json Event(const std::string& event) {
  EXPECT_TRUE(event.starts_with("data: ")) << event;
  EXPECT_TRUE(event.ends_with("\n\n")) << event;
  EXPECT_EQ(event.find('\n'), event.size() - 2) << event;
  return json::parse(event.substr(6));
}

TEST(AnswerFormatTest, ChatChunks) {
  const AnswerFormat format(Identity());
  EXPECT_EQ(Event(format.FirstChunk(1)), json::parse(R"({"id":"id-1",
      "object":"chat.completion.chunk","created":7,"model":"m \"q\"","choices":[{"index":1,
      "delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,
      "finish_reason":null}]})"));
  const json delta = Event(format.DeltaChunk(0, Text("a\n\"é"), 0));
  EXPECT_EQ(delta["choices"], json::parse(R"([{"index":0,"delta":{"content":"a\n\"é"},
      "logprobs":null,"finish_reason":null}])"));
  const json finish = Event(format.FinishChunk(0, FinishReason::kLength));
  EXPECT_EQ(finish["choices"], json::parse(R"([{"index":0,"delta":{},"logprobs":null,
      "finish_reason":"length"}])"));
  EXPECT_FALSE(finish.contains("usage"));
}

TEST(AnswerFormatTest, UsageIsNullUntilItsOwnChunk) {
  AnswerIdentity identity = Identity();
  identity.include_usage = true;
  const AnswerFormat format(identity);
  for (const std::string& event : {format.FirstChunk(0), format.DeltaChunk(0, Text("x"), 0),
                                   format.FinishChunk(0, FinishReason::kStop)}) {
    EXPECT_TRUE(Event(event).at("usage").is_null());
  }
  const json chunk = Event(format.UsageChunk({10, 4, 5}));
  EXPECT_EQ(chunk["choices"], json::array());
  EXPECT_EQ(chunk["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":5,
      "total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},
      "completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,
      "accepted_prediction_tokens":0,"rejected_prediction_tokens":0}})"));
}

TEST(AnswerFormatTest, ChatLogprobs) {
  AnswerIdentity identity = Identity();
  identity.with_logprobs = true;
  TextDelta delta = Text("é");
  delta.logprobs = {{"\xc3", -0.5f, {{"\xc3", -0.5f}, {"a", -INFINITY}}}, {"\xa9", 0, {}}};
  const json chunk = Event(AnswerFormat(identity).DeltaChunk(0, delta, 0));
  EXPECT_EQ(chunk["choices"][0]["logprobs"], json::parse(R"({"content":[
      {"token":"\ufffd","logprob":-0.5,"bytes":[195],"top_logprobs":[
        {"token":"\ufffd","logprob":-0.5,"bytes":[195]},{"token":"a","logprob":-9999.0,"bytes":[97]}]},
      {"token":"\ufffd","logprob":0.0,"bytes":[169],"top_logprobs":[]}],"refusal":null})"));
}

TEST(AnswerFormatTest, WholeAnswers) {
  const AnswerFormat chat(Identity());
  const std::vector<ChoiceAnswer> choices = {{"one", {}, FinishReason::kStop},
                                             {"", {}, FinishReason::kLength}};
  const json body = json::parse(chat.Whole(choices, {3, 0, 9}));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"], json::parse(R"([
      {"index":0,"message":{"role":"assistant","content":"one","refusal":null},"logprobs":null,
       "finish_reason":"stop"},
      {"index":1,"message":{"role":"assistant","content":"","refusal":null},"logprobs":null,
       "finish_reason":"length"}])"));
  EXPECT_EQ(body["usage"]["total_tokens"], 12);
  const json plain =
      json::parse(AnswerFormat(Identity(AnswerKind::kCompletion)).Whole(choices, {3, 0, 9}));
  EXPECT_EQ(plain["object"], "text_completion");
  EXPECT_EQ(plain["choices"][0],
            json::parse(R"({"index":0,"text":"one","logprobs":null,"finish_reason":"stop"})"));
}

TEST(AnswerFormatTest, CompletionLogprobs) {
  AnswerIdentity identity = Identity(AnswerKind::kCompletion);
  identity.with_logprobs = true;
  TextDelta delta = Text("aé");
  delta.logprobs = {{"aé", -1, {{"aé", -1.0f}, {"b", -2.0f}}}, {"c", -0.25f, {}}};
  const json chunk = Event(AnswerFormat(identity).DeltaChunk(0, delta, 10));
  EXPECT_EQ(chunk["choices"][0]["text"], "aé");
  EXPECT_EQ(chunk["choices"][0]["logprobs"], json::parse(R"({"tokens":["aé","c"],
      "token_logprobs":[-1.0,-0.25],"top_logprobs":[{"aé":-1.0,"b":-2.0},{}],
      "text_offset":[10,12]})"));
}

TEST(AnswerFormatTest, TokenIdsWhenAskedFor) {
  AnswerIdentity identity = Identity();
  identity.with_token_ids = true;
  const AnswerFormat format(identity);
  TextDelta delta = Text("aé");
  delta.tokens = {TokenId{5}, TokenId{0}};
  EXPECT_EQ(Event(format.DeltaChunk(0, delta, 0))["choices"][0]["token_ids"], json({5, 0}));
  EXPECT_FALSE(
      Event(format.FinishChunk(0, FinishReason::kStop))["choices"][0].contains("token_ids"));
  const std::vector<ChoiceAnswer> choices = {{"aé", {}, FinishReason::kStop, delta.tokens},
                                             {"", {}, FinishReason::kLength, {}}};
  const json body = json::parse(format.Whole(choices, {3, 0, 2}));
  EXPECT_EQ(body["choices"][0]["token_ids"], json({5, 0}));
  EXPECT_EQ(body["choices"][1]["token_ids"], json::array());
}

// Text streams of the real service, event by event: what this writes for the same deltas is equal.
TEST(AnswerFormatTest, RealStreamsAreReproduced) {
  const char* const data = std::getenv("HEXAD_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(data != nullptr ? data : "../shared/data") / "openai-sse-snapshots";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  int compared = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".sse") continue;
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    const std::vector<std::string> events = ReadEvents(text.str());
    ASSERT_EQ(events.back(), "[DONE]");
    const json head = json::parse(events[0]);
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const json real = json::parse(events[i]);
      if (real["choices"].empty()) continue;
      const json& choice = real["choices"][0];
      const json& delta = choice["delta"];
      if (delta.contains("tool_calls") ||
          (delta.contains("refusal") && !delta["refusal"].is_null()) ||
          (delta.contains("content") && delta["content"].is_null())) {
        continue;
      }
      AnswerIdentity identity{.id = head["id"],
                              .created_unix = head["created"],
                              .model = head["model"],
                              .system_fingerprint = head["system_fingerprint"]};
      identity.with_logprobs = !choice["logprobs"].is_null();
      const AnswerFormat format(identity);
      const int32_t index = choice["index"];
      json ours;
      json expected = real;
      if (delta.contains("role")) {
        ours = Event(format.FirstChunk(index));
        expected["choices"][0]["logprobs"] = nullptr;  // there: an empty list
      } else if (delta.contains("content")) {
        TextDelta ourDelta = Text(delta["content"]);
        if (identity.with_logprobs) {
          for (const json& entry : choice["logprobs"]["content"]) {
            ourDelta.logprobs.push_back({entry["token"], entry["logprob"].get<float>(), {}});
          }
        }
        ours = Event(format.DeltaChunk(index, ourDelta, 0));
      } else {
        const std::string reason = choice["finish_reason"];
        if (reason != "stop" && reason != "length") continue;
        ours = Event(format.FinishChunk(
            index, reason == "stop" ? FinishReason::kStop : FinishReason::kLength));
      }
      EXPECT_EQ(ours, expected) << file.path();
      ++compared;
    }
  }
  std::printf("%d events compared\n", compared);
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace hexad
