#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/openai/openai_request.h"
#include "server/status.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

constexpr char kMinimal[] = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";

// The minimal request with `extra` members ("\"n\":2") added.
absl::StatusOr<OpenAiRequest> ParseWith(const std::string& extra) {
  std::string body = kMinimal;
  body.insert(body.size() - 1, "," + extra);
  return ParseChatRequest(body, RequestLimits());
}

HttpError ErrorOf(const absl::StatusOr<OpenAiRequest>& request) {
  EXPECT_FALSE(request.ok());
  return request.ok() ? HttpError{.status = 200} : ToHttpError(request.status());
}

std::vector<ChatMessage> Messages(const OpenAiRequest& request) {
  return std::get<std::vector<ChatMessage>>(request.call.input);
}

TEST(ChatRequestTest, DefaultsAreOpenAis) {
  const auto request = ParseChatRequest(kMinimal, RequestLimits());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->call.model, "m");
  ASSERT_EQ(Messages(*request).size(), 1u);
  EXPECT_EQ(Messages(*request)[0].role, "user");
  EXPECT_EQ(Messages(*request)[0].content, "hi");
  EXPECT_EQ(request->call.sampling.temperature, 1.0f);
  EXPECT_EQ(request->call.sampling.top_p, 1.0f);
  EXPECT_EQ(request->call.sampling.num_logprobs, -1);
  EXPECT_EQ(request->call.num_choices, 1);
  EXPECT_EQ(request->call.max_new_tokens, -1);
  EXPECT_FALSE(request->call.has_seed);
  EXPECT_FALSE(request->stream);
  EXPECT_EQ(request->call.workflow.source, "");
}

TEST(ChatRequestTest, EveryFieldArrives) {
  const auto request = ParseWith(
      R"("temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"n":3,"stop":["a","b"],"seed":-7,)"
      R"("presence_penalty":-1,"frequency_penalty":1.5,"repetition_penalty":1.1,)"
      R"("logit_bias":{"5":-100,"17":2.5},"logprobs":true,"top_logprobs":4,"stream":true,)"
      R"("stream_options":{"include_usage":true,"other":1},"max_completion_tokens":20,)"
      R"("max_tokens":10,"min_tokens":2,"ignore_eos":true,"stop_token_ids":[3],"user":"u",)"
      R"("return_token_ids":true,)"
      R"("store":true,"service_tier":"auto","prompt_cache_key":"k","parallel_tool_calls":false,)"
      R"("tools":[],"tool_choice":"none","response_format":{"type":"text"},"modalities":["text"],)"
      R"("reasoning_effort":"low","unknown_field":{"x":[1]})");
  ASSERT_TRUE(request.ok()) << request.status();
  const GenerateCall& call = request->call;
  EXPECT_EQ(call.sampling.temperature, 0.5f);
  EXPECT_EQ(call.sampling.top_p, 0.9f);
  EXPECT_EQ(call.sampling.top_k, 40);
  EXPECT_EQ(call.sampling.min_p, 0.05f);
  EXPECT_EQ(call.sampling.presence_penalty, -1.0f);
  EXPECT_EQ(call.sampling.frequency_penalty, 1.5f);
  EXPECT_EQ(call.sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(call.sampling.seed, static_cast<uint64_t>(-7));
  EXPECT_TRUE(call.has_seed);
  EXPECT_EQ(call.sampling.num_logprobs, 4);
  ASSERT_EQ(call.sampling.logit_bias.size(), 2u);
  EXPECT_EQ(call.sampling.logit_bias[1], std::make_pair(TokenId{17}, 2.5f));
  EXPECT_EQ(call.num_choices, 3);
  EXPECT_EQ(call.stop_strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(call.stop_tokens, (std::vector<TokenId>{TokenId{3}}));
  EXPECT_EQ(call.max_new_tokens, 20);
  EXPECT_EQ(call.min_new_tokens, 2);
  EXPECT_TRUE(call.ignore_end_of_sequence);
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_TRUE(request->return_token_ids);
}

TEST(ChatRequestTest, NullsCountAsAbsent) {
  const auto request = ParseWith(
      R"("temperature":null,"n":null,"stop":null,"tools":null,"stream_options":null,"seed":null,)"
      R"("logprobs":null,"top_logprobs":null,"max_tokens":null,"response_format":null)");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_FALSE(request->call.has_seed);
}

TEST(ChatRequestTest, TheLastOfTwoEqualFieldsHolds) {
  EXPECT_EQ(
      ParseWith(R"("max_tokens":1,"stop":"a","max_tokens":2,"stop":["b"])")->call.stop_strings,
      std::vector<std::string>{"b"});
  EXPECT_EQ(ParseWith(R"("max_tokens":1,"max_tokens":2.0)")->call.max_new_tokens, 2);
}

TEST(ChatRequestTest, RolesAndContents) {
  const auto request = ParseChatRequest(
      R"({"model":"m","messages":[{"role":"system","content":""},{"role":"developer",
      "content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"user","content":"\u00e9\ud83c\udf89","name":"bob"},
      {"role":"assistant","content":"x","refusal":null,"tool_calls":[],"audio":null},
      {"role":"assistant","content":null,"refusal":"no"},
      {"role":"tool","tool_call_id":"c1","content":"42"}]})",
      RequestLimits());
  ASSERT_TRUE(request.ok()) << request.status();
  const auto messages = Messages(*request);
  EXPECT_EQ(messages[1].content, "a\nb");
  EXPECT_EQ(messages[2].content, "é🎉");
  EXPECT_EQ(messages[2].name, "bob");
  EXPECT_EQ(messages[4].content, "no");
  EXPECT_EQ(messages[5].role, "tool");
}

struct BadField {
  const char* extra;
  const char* param;
};

TEST(ChatRequestTest, RangesAndTypesNameTheField) {
  const BadField cases[] = {
      {R"("temperature":2.1)", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":"hot")", "temperature"},
      {R"("top_p":1.5)", "top_p"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("min_p":-1)", "min_p"},
      {R"("n":0)", "n"},
      {R"("n":9)", "n"},
      {R"("n":1e300)", "n"},
      {R"("n":true)", "n"},
      {R"("presence_penalty":3)", "presence_penalty"},
      {R"("frequency_penalty":-2.5)", "frequency_penalty"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":3000000000)", "max_tokens"},
      {R"("max_completion_tokens":-1)", "max_completion_tokens"},
      {R"("max_tokens":1,"min_tokens":2)", "min_tokens"},
      {R"("stop":["a","b","c","d","e"])", "stop"},
      {R"("stop":[1])", "stop[0]"},
      {R"("stop":"")", "stop"},
      {R"("stop":5)", "stop"},
      {R"("seed":"x")", "seed"},
      {R"("logit_bias":{"x":1})", "logit_bias.x"},
      {R"("logit_bias":{"-1":1})", "logit_bias.-1"},
      {R"("logit_bias":{"1":101})", "logit_bias.1"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("logprobs":1)", "logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("metadata":"x")", "metadata"},
      {R"("user":1)", "user"},
      {R"("model":1)", "model"},
      {R"("model":"")", "model"},
      {R"("messages":[])", "messages"},
      {R"("messages":{})", "messages"},
      {R"("messages":["x"])", "messages[0]"},
      {R"("messages":[{"content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":"robot","content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":"user"}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":null}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":1}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":[]}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0]"},
  };
  for (const auto& [extra, param] : cases) {
    const HttpError error = ErrorOf(ParseWith(extra));
    EXPECT_EQ(error.status, 400) << extra;
    EXPECT_EQ(error.type, "invalid_request_error") << extra;
    EXPECT_EQ(error.param, param) << extra << " " << error.message;
    EXPECT_THAT(error.message, HasSubstr(param)) << extra;
  }
}

TEST(ChatRequestTest, UnsupportedFieldsAreRefusedByName) {
  const BadField cases[] = {
      {R"("tools":[{"type":"function","function":{"name":"f"}}])", "tools"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function"})", "tool_choice"},
      {R"("functions":[{"name":"f"}])", "functions"},
      {R"("function_call":{"name":"f"})", "function_call"},
      {R"("response_format":{"type":"json_object"})", "response_format.type"},
      {R"("modalities":["text","audio"])", "modalities"},
      {R"("audio":{"voice":"x"})", "audio"},
      {R"("web_search_options":{})", "web_search_options"},
      {R"("guided_json":{})", "guided_json"},
      {R"("continue_final_message":true)", "continue_final_message"},
      {R"("use_beam_search":true)", "use_beam_search"},
      {R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[0].type"},
      {R"("messages":[{"role":"assistant","content":null,"tool_calls":[{}]}])",
       "messages[0].tool_calls"},
      {R"("messages":[{"role":"function","content":"x"}])", "messages[0].role"},
  };
  for (const auto& [extra, param] : cases) {
    const HttpError error = ErrorOf(ParseWith(extra));
    EXPECT_EQ(error.status, 400) << extra;
    EXPECT_EQ(error.param, param) << extra << " " << error.message;
    EXPECT_THAT(error.message, HasSubstr("support")) << extra;
  }
  EXPECT_TRUE(ParseWith(R"("tools":[{"type":"function"}],"tool_choice":"none")").ok());
}

TEST(ChatRequestTest, MissingFields) {
  EXPECT_EQ(ErrorOf(ParseChatRequest(R"({"model":"m"})", {})).param, "messages");
  EXPECT_EQ(ErrorOf(ParseChatRequest(R"({"messages":[{"role":"user","content":"x"}]})", {})).param,
            "model");
}

TEST(ChatRequestTest, MalformedBodiesSayWhere) {
  EXPECT_THAT(ErrorOf(ParseChatRequest("{\"model\":\"m\",\n  oops}", {})).message,
              HasSubstr("at byte 16 (line 2, column 3)"));
  EXPECT_THAT(ErrorOf(ParseChatRequest("", {})).message, HasSubstr("at byte 0"));
  EXPECT_THAT(ErrorOf(ParseChatRequest("{\"model\":\"\xff\"}", {})).message, HasSubstr("UTF-8"));
  EXPECT_THAT(ErrorOf(ParseChatRequest("[]", {})).message, HasSubstr("JSON object"));
  EXPECT_EQ(ErrorOf(ParseChatRequest(std::string(1 << 20, '['), {})).status, 400);
  EXPECT_EQ(ErrorOf(ParseChatRequest("{\"n\":1e999}", {})).status, 400);
  EXPECT_EQ(ErrorOf(ParseChatRequest("{\"n\":123456789012345678901234567890}", {})).status, 400);
}

TEST(ChatRequestTest, CountsAreBounded) {
  RequestLimits limits;
  limits.max_messages = 3;
  limits.max_logit_bias = 2;
  limits.max_choices = 128;
  const std::string message = R"({"role":"user","content":"x"})";
  const auto with = [&](int count, const std::string& extra) {
    std::string body = R"({"model":"m","messages":[)";
    for (int i = 0; i < count; ++i) body += (i > 0 ? "," : "") + message;
    return ParseChatRequest(body + "]" + extra + "}", limits);
  };
  EXPECT_TRUE(with(3, R"(,"n":128)").ok());
  EXPECT_EQ(ErrorOf(with(4, "")).param, "messages");
  EXPECT_EQ(ErrorOf(with(1, R"(,"logit_bias":{"1":1,"2":1,"3":1})")).param, "logit_bias");
}

}  // namespace
}  // namespace hexad
