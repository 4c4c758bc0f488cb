#include "server/client/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/client/interrupt.h"
#include "tests/server/support/fake_openai.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

TEST(Api, Addresses) {
  EXPECT_EQ(ApiUrl({"http://h:1", ""}, "/models"), "http://h:1/v1/models");
  EXPECT_EQ(ApiUrl({"http://h:1/v1/", ""}, "/models"), "http://h:1/v1/models");
  EXPECT_EQ(ApiUrl({"h:1", ""}, "/models"), "http://h:1/v1/models");
}

TEST(Api, AsksForTheFirstModel) {
  FakeHttpServer server([](const FakeRequest& request, FakeConnection& connection) {
    if (request.Header("authorization") != "Bearer k") {
      return connection.Respond(401, {}, FakeError("who are you"));
    }
    connection.Respond(200, {}, kFakeModels);
  });
  EXPECT_EQ(*AskForModel({server.Url(), "k"}), "fake-model");
  EXPECT_THAT(std::string(AskForModel({server.Url(), ""}).status().message()),
              HasSubstr("--api-key KEY (who are you)"));
}

TEST(Api, NoServerSaysHowToStartOne) {
  const std::string url = "http://127.0.0.1:" + std::to_string(ClosedPort());
  const auto model = AskForModel({url, ""});
  EXPECT_TRUE(absl::IsUnavailable(model.status()));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(url));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("Start it with: make serve"));
}

TEST(Interrupt, TakesCtrlCWhileItLives) {
  InterruptScope scope;
  EXPECT_FALSE(scope.Take());
  std::raise(SIGINT);
  std::raise(SIGINT);
  EXPECT_TRUE(scope.Take());
  EXPECT_FALSE(scope.Take());
}

}  // namespace
}  // namespace hexad
