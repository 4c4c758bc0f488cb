#include "server/grpc/generate_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "hexad/v1/inference.pb.h"
#include "server/status.h"

namespace hexad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::GenerateRequest Minimal() {
  v1::GenerateRequest request;
  request.set_model("m");
  request.set_text("hello");
  return request;
}

TEST(GenerateRequestTest, EverythingArrives) {
  v1::GenerateRequest request = Minimal();
  request.set_num_choices(2);
  request.set_request_id("r1");
  v1::Sampling& sampling = *request.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_top_k(5);
  sampling.set_top_p(0.5f);
  sampling.set_min_p(0.1f);
  sampling.set_repetition_penalty(1.5f);
  sampling.set_presence_penalty(-2);
  sampling.set_frequency_penalty(2);
  sampling.set_seed(0);
  sampling.set_num_logprobs(3);
  (*sampling.mutable_logit_bias())[7] = -100;
  (*sampling.mutable_logit_bias())[2] = 50;
  v1::Stop& stop = *request.mutable_stop();
  stop.set_max_tokens(10);
  stop.set_min_tokens(4);
  stop.set_ignore_end_of_sequence(true);
  stop.add_strings("END");
  stop.add_token_ids(9);
  request.mutable_workflow()->set_workflow("wf");
  request.mutable_workflow()->add_parents("c1");
  const auto call = ParseGenerateRequest(request, {});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->model, "m");
  EXPECT_EQ(std::get<std::string>(call->input), "hello");
  EXPECT_EQ(call->num_choices, 2);
  EXPECT_EQ(call->request_id, "r1");
  EXPECT_EQ(call->sampling.temperature, 0);
  EXPECT_EQ(call->sampling.top_k, 5);
  EXPECT_EQ(call->sampling.top_p, 0.5f);
  EXPECT_EQ(call->sampling.min_p, 0.1f);
  EXPECT_EQ(call->sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(call->sampling.presence_penalty, -2);
  EXPECT_EQ(call->sampling.frequency_penalty, 2);
  EXPECT_TRUE(call->has_seed);
  EXPECT_EQ(call->sampling.num_logprobs, 3);
  EXPECT_THAT(call->sampling.logit_bias, ElementsAre(std::pair(static_cast<TokenId>(2), 50.0f),
                                                     std::pair(static_cast<TokenId>(7), -100.0f)));
  EXPECT_EQ(call->max_new_tokens, 10);
  EXPECT_EQ(call->min_new_tokens, 4);
  EXPECT_TRUE(call->ignore_end_of_sequence);
  EXPECT_THAT(call->stop_strings, ElementsAre("END"));
  EXPECT_THAT(call->stop_tokens, ElementsAre(static_cast<TokenId>(9)));
  EXPECT_EQ(call->workflow.workflow, "wf");
  EXPECT_THAT(call->workflow.parents, ElementsAre("c1"));
}

TEST(GenerateRequestTest, DefaultsAreTheServers) {
  const auto call = ParseGenerateRequest(Minimal(), {});
  ASSERT_TRUE(call.ok());
  const GenerateCall defaults;
  EXPECT_EQ(call->num_choices, 1);
  EXPECT_EQ(call->max_new_tokens, -1);
  EXPECT_FALSE(call->has_seed);
  EXPECT_EQ(call->sampling.temperature, defaults.sampling.temperature);
  EXPECT_EQ(call->sampling.num_logprobs, -1);
  EXPECT_EQ(call->workflow.source, "");
}

TEST(GenerateRequestTest, MessagesAndTokens) {
  v1::GenerateRequest request = Minimal();
  v1::ChatMessage& message = *request.mutable_messages()->add_messages();
  message.set_role("user");
  message.set_content("hi");
  auto call = ParseGenerateRequest(request, {});
  ASSERT_TRUE(call.ok());
  ASSERT_EQ(std::get<std::vector<ChatMessage>>(call->input).size(), 1u);
  EXPECT_EQ(std::get<std::vector<ChatMessage>>(call->input)[0].content, "hi");
  request.mutable_token_ids()->add_ids(5);
  call = ParseGenerateRequest(request, {});
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(std::get<std::vector<TokenId>>(call->input), ElementsAre(static_cast<TokenId>(5)));
}

TEST(GenerateRequestTest, MetadataFillsWhatTheMessageLacks) {
  v1::GenerateRequest request = Minimal();
  CallMetadata metadata{"id", "wf", "c", "agent", "p1, p2,,p3 "};
  auto call = ParseGenerateRequest(request, metadata);
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->request_id, "id");
  EXPECT_EQ(call->workflow.workflow, "wf");
  EXPECT_EQ(call->workflow.agent, "agent");
  EXPECT_THAT(call->workflow.parents, ElementsAre("p1", "p2", "p3"));
  EXPECT_EQ(call->workflow.source, "hexad");
  metadata.parents = std::string(100'000, ',') + "x";
  EXPECT_TRUE(ParseGenerateRequest(request, metadata).ok());
  for (int i = 0; i < 100; ++i) metadata.parents += ",y";
  EXPECT_FALSE(ParseGenerateRequest(request, metadata).ok());
}

TEST(GenerateRequestTest, EveryErrorNamesItsField) {
  const struct {
    const char* param;
    std::function<void(v1::GenerateRequest&)> change;
  } kCases[] = {
      {"model", [](auto& r) { r.clear_model(); }},
      {"model", [](auto& r) { r.set_model(std::string(1000, 'm')); }},
      {"input", [](auto& r) { r.clear_input(); }},
      {"token_ids.ids", [](auto& r) { r.mutable_token_ids(); }},
      {"token_ids.ids[1]",
       [](auto& r) {
         r.mutable_token_ids()->add_ids(0);
         r.mutable_token_ids()->add_ids(-1);
       }},
      {"messages.messages", [](auto& r) { r.mutable_messages(); }},
      {"messages.messages[0].role", [](auto& r) { r.mutable_messages()->add_messages(); }},
      {"num_choices", [](auto& r) { r.set_num_choices(-1); }},
      {"num_choices", [](auto& r) { r.set_num_choices(9); }},
      {"request_id", [](auto& r) { r.set_request_id("a\nb"); }},
      {"request_id", [](auto& r) { r.set_request_id(std::string(300, 'a')); }},
      {"sampling.temperature", [](auto& r) { r.mutable_sampling()->set_temperature(2.1f); }},
      {"sampling.temperature", [](auto& r) { r.mutable_sampling()->set_temperature(NAN); }},
      {"sampling.top_k", [](auto& r) { r.mutable_sampling()->set_top_k(-1); }},
      {"sampling.top_p", [](auto& r) { r.mutable_sampling()->set_top_p(0); }},
      {"sampling.min_p", [](auto& r) { r.mutable_sampling()->set_min_p(1.5f); }},
      {"sampling.repetition_penalty",
       [](auto& r) { r.mutable_sampling()->set_repetition_penalty(0); }},
      {"sampling.presence_penalty",
       [](auto& r) { r.mutable_sampling()->set_presence_penalty(-INFINITY); }},
      {"sampling.frequency_penalty",
       [](auto& r) { r.mutable_sampling()->set_frequency_penalty(3); }},
      {"sampling.num_logprobs", [](auto& r) { r.mutable_sampling()->set_num_logprobs(21); }},
      {"sampling.logit_bias[3]",
       [](auto& r) { (*r.mutable_sampling()->mutable_logit_bias())[3] = NAN; }},
      {"sampling.logit_bias[-3]",
       [](auto& r) { (*r.mutable_sampling()->mutable_logit_bias())[-3] = 1; }},
      {"stop.max_tokens", [](auto& r) { r.mutable_stop()->set_max_tokens(0); }},
      {"stop.min_tokens", [](auto& r) { r.mutable_stop()->set_min_tokens(-1); }},
      {"stop.min_tokens",
       [](auto& r) {
         r.mutable_stop()->set_max_tokens(1);
         r.mutable_stop()->set_min_tokens(2);
       }},
      {"stop.strings[0]", [](auto& r) { r.mutable_stop()->add_strings(""); }},
      {"stop.strings",
       [](auto& r) {
         for (int i = 0; i < 17; ++i) r.mutable_stop()->add_strings("x");
       }},
      {"stop.token_ids[0]", [](auto& r) { r.mutable_stop()->add_token_ids(-5); }},
      {"workflow.agent", [](auto& r) { r.mutable_workflow()->set_agent("\x01"); }},
  };
  for (const auto& each : kCases) {
    v1::GenerateRequest request = Minimal();
    each.change(request);
    const auto call = ParseGenerateRequest(request, {});
    ASSERT_FALSE(call.ok()) << each.param;
    EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ToHttpError(call.status()).param, each.param);
    EXPECT_THAT(std::string(call.status().message()), HasSubstr(each.param));
  }
}

}  // namespace
}  // namespace hexad
