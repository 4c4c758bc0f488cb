#include <gtest/gtest.h>

#include "server/openai/openai_request.h"
#include "server/status.h"

namespace hexad {
namespace {

absl::StatusOr<OpenAiRequest> ParseWith(const std::string& members) {
  return ParseCompletionRequest("{\"model\":\"m\"," + members + "}", RequestLimits());
}

TEST(CompletionRequestTest, Prompts) {
  EXPECT_EQ(std::get<std::string>(ParseWith(R"("prompt":"x")")->call.input), "x");
  EXPECT_EQ(std::get<std::string>(ParseWith(R"("prompt":["x"])")->call.input), "x");
  const std::vector<TokenId> tokens = {TokenId{1}, TokenId{2}};
  EXPECT_EQ(std::get<std::vector<TokenId>>(ParseWith(R"("prompt":[1,2])")->call.input), tokens);
  EXPECT_EQ(std::get<std::vector<TokenId>>(ParseWith(R"("prompt":[[1,2]])")->call.input), tokens);
}

TEST(CompletionRequestTest, BadPrompts) {
  for (const char* members :
       {R"("prompt":[])", R"("prompt":{})", R"("prompt":["a","b"])", R"("prompt":[[1],[2]])",
        R"("prompt":[-1])", R"("prompt":[1,"a"])", R"("prompt":[1.5])", R"("prompt":[null])",
        R"("prompt":[[[1]]])", R"("prompt":[[]])", R"("prompt":null)"}) {
    const auto request = ParseWith(members);
    ASSERT_FALSE(request.ok()) << members;
    EXPECT_EQ(ToHttpError(request.status()).param, "prompt") << members;
  }
}

TEST(CompletionRequestTest, DefaultsAndOwnFields) {
  const auto request = ParseWith(R"("prompt":"x","logprobs":3,"best_of":1,"echo":false)");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->call.max_new_tokens, 16);
  EXPECT_EQ(request->call.sampling.num_logprobs, 3);
  for (const auto& [extra, param] : {std::pair{R"("logprobs":6)", "logprobs"},
                                     {R"("best_of":2)", "best_of"},
                                     {R"("echo":true)", "echo"},
                                     {R"("suffix":"x")", "suffix"}}) {
    const auto refused = ParseWith(std::string(R"("prompt":"x",)") + extra);
    ASSERT_FALSE(refused.ok()) << extra;
    EXPECT_EQ(ToHttpError(refused.status()).param, param);
  }
}

}  // namespace
}  // namespace hexad
