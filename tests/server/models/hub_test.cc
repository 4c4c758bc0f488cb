#include "server/models/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

std::string Listing(const std::vector<std::string>& files) {
  std::string json = R"({"id":"o/r","cardData":{"license":"apache-2.0"},"siblings":[)";
  for (const std::string& file : files) {
    json += (json.back() == '[' ? "" : ",") + std::string(R"({"rfilename":")") + file + "\"}";
  }
  return json + "]}";
}

struct Asked {
  absl::StatusOr<HubFile> file;
  std::vector<FakeRequest> requests;
};

Asked Ask(const std::string& source, int status, const std::string& answer,
          const std::string& token = "") {
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.Respond(status, {}, answer);
  });
  const auto parsed = ParseSource(source);
  auto file = FindHubFile(std::get<HubSource>(*parsed), {server.Url("/"), token}, TestLimits());
  if (file.ok()) file->url = file->url.substr(server.Url().size());
  return {std::move(file), server.Requests()};
}

std::string Message(const Asked& asked) { return std::string(asked.file.status().message()); }

TEST(Hub, FindsTheOnlyFileAndItsLicence) {
  const Asked asked = Ask("hf:o/r", 200, Listing({"README.md", "m-Q4_0.gguf"}), "tok");
  ASSERT_TRUE(asked.file.ok()) << asked.file.status();
  EXPECT_EQ(asked.file->url, "/o/r/resolve/main/m-Q4_0.gguf");
  EXPECT_EQ(asked.file->licence, "apache-2.0");
  EXPECT_EQ(asked.requests[0].target, "/api/models/o/r");
  EXPECT_EQ(asked.requests[0].Header("authorization"), "Bearer tok");
}

TEST(Hub, RevisionsAndOddNamesAreEscaped) {
  const Asked asked = Ask("hf:o/r@refs/pr/1:dir/a b#1.gguf", 200, Listing({"dir/a b#1.gguf"}));
  ASSERT_TRUE(asked.file.ok()) << asked.file.status();
  EXPECT_EQ(asked.file->url, "/o/r/resolve/refs%2Fpr%2F1/dir/a%20b%231.gguf");
  EXPECT_EQ(asked.requests[0].target, "/api/models/o/r/revision/refs%2Fpr%2F1");
}

TEST(Hub, SeveralFilesAreListedToChooseFrom) {
  const Asked asked = Ask("hf:o/r", 200, Listing({"a.gguf", "b.gguf"}));
  EXPECT_TRUE(absl::IsInvalidArgument(asked.file.status()));
  EXPECT_THAT(Message(asked), HasSubstr("as in hf:o/r:a.gguf\n  a.gguf\n  b.gguf"));
  EXPECT_THAT(Message(Ask("hf:o/r:c.gguf", 200, Listing({"a.gguf"}))),
              HasSubstr("no file \"c.gguf\"; its .gguf files:\n  a.gguf"));
  EXPECT_THAT(Message(Ask("hf:o/r", 200, Listing({"model.safetensors"}))),
              HasSubstr("holds no .gguf file"));
}

TEST(Hub, AccessErrorsSayWhatToDo) {
  EXPECT_THAT(Message(Ask("hf:o/r", 401, "{}")), HasSubstr("set HF_TOKEN"));
  EXPECT_THAT(Message(Ask("hf:o/r", 403, "{}", "tok")), HasSubstr("accept the model's terms"));
  EXPECT_THAT(Message(Ask("hf:o/r", 404, "{}")), HasSubstr("is the name right?"));
}

TEST(Hub, NonsenseIsAnError) {
  EXPECT_TRUE(absl::IsDataLoss(Ask("hf:o/r", 200, "<html>").file.status()));
  EXPECT_TRUE(absl::IsDataLoss(Ask("hf:o/r", 200, "[]").file.status()));
  EXPECT_FALSE(Ask("hf:o/r", 200, R"({"siblings":[1,{"rfilename":2}]})").file.ok());
  const auto file = FindHubFile({"o/r", "main", ""}, {"http://hub.example", ""}, TestLimits());
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("HF_ENDPOINT"));
}

}  // namespace
}  // namespace hexad
