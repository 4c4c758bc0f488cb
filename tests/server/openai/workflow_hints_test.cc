#include <gtest/gtest.h>

#include "server/openai/openai_request.h"
#include "server/status.h"

namespace hexad {
namespace {

absl::StatusOr<OpenAiRequest> ParseMetadata(const std::string& metadata) {
  return ParseChatRequest(
      R"({"model":"m","messages":[{"role":"user","content":"x"}],"metadata":)" + metadata + "}",
      RequestLimits());
}

TEST(WorkflowHintsTest, Metadata) {
  const auto request = ParseMetadata(
      R"({"hexad_workflow":"w1","hexad_call":"c2","hexad_parents":"c0, c1","hexad_agent":"coder",)"
      R"("mine":1,"hexad_other":{}})");
  ASSERT_TRUE(request.ok()) << request.status();
  const WorkflowHints& hints = request->call.workflow;
  EXPECT_EQ(hints.workflow, "w1");
  EXPECT_EQ(hints.call, "c2");
  EXPECT_EQ(hints.agent, "coder");
  EXPECT_EQ(hints.parents, (std::vector<std::string>{"c0", "c1"}));
  EXPECT_EQ(hints.source, "metadata");
  EXPECT_EQ(ParseMetadata(R"({"hexad_parents":["a","b"]})")->call.workflow.parents.size(), 2u);
  EXPECT_EQ(ParseMetadata(R"({"mine":"x"})")->call.workflow.source, "");
}

TEST(WorkflowHintsTest, BadMetadataNamesTheMember) {
  const std::string longest(257, 'x');
  for (const auto& [metadata, param] :
       {std::pair<std::string, std::string>{R"({"hexad_workflow":1})", "metadata.hexad_workflow"},
        {R"({"hexad_call":""})", "metadata.hexad_call"},
        {R"({"hexad_call":"a\u0007"})", "metadata.hexad_call"},
        {R"({"hexad_agent":")" + longest + "\"}", "metadata.hexad_agent"},
        {R"({"hexad_parents":[1]})", "metadata.hexad_parents"},
        {R"({"hexad_parents":{}})", "metadata.hexad_parents"}}) {
    const auto request = ParseMetadata(metadata);
    ASSERT_FALSE(request.ok()) << metadata;
    EXPECT_EQ(ToHttpError(request.status()).param, param);
  }
}

TEST(WorkflowHintsTest, HeadersReplaceMetadata) {
  WorkflowHints hints{.workflow = "old", .call = "old", .source = "metadata"};
  ASSERT_TRUE(ReadWorkflowHeaders({{"host", "h"}}, &hints).ok());
  EXPECT_EQ(hints.workflow, "old");
  ASSERT_TRUE(ReadWorkflowHeaders({{"x-hexad-workflow", "w"},
                                   {"x-hexad-parents", "a,b , c,"},
                                   {"x-hexad-agent", "planner"}},
                                  &hints)
                  .ok());
  EXPECT_EQ(hints.workflow, "w");
  EXPECT_EQ(hints.call, "");
  EXPECT_EQ(hints.parents, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(hints.source, "header");
}

TEST(WorkflowHintsTest, BadHeadersNameThemselves) {
  std::string parents;
  for (int i = 0; i < 65; ++i) parents += "p,";
  WorkflowHints hints;
  absl::Status status = ReadWorkflowHeaders({{"x-hexad-parents", parents}}, &hints);
  EXPECT_EQ(ToHttpError(status).param, "x-hexad-parents");
  status = ReadWorkflowHeaders({{"x-hexad-workflow", std::string(300, 'w')}}, &hints);
  EXPECT_EQ(ToHttpError(status).param, "x-hexad-workflow");
  EXPECT_EQ(ToHttpError(status).status, 400);
}

}  // namespace
}  // namespace hexad
