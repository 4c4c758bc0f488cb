#include "server/http/router.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

Router MakeRouter() {
  Router router;
  const auto nothing = [](HttpRequest, ResponseWriter) {};
  router.Add({.method = "GET", .pattern = "/v1/models", .handler = nothing});
  router.Add({.method = "GET", .pattern = "/v1/models/{id}", .handler = nothing});
  router.Add({.method = "DELETE", .pattern = "/v1/models/{id}", .handler = nothing});
  router.Add({.method = "POST", .pattern = "/v1/chat/completions", .handler = nothing});
  return router;
}

TEST(RouterTest, ParameterTakesSlashesAndEscapes) {
  const Router router = MakeRouter();
  EXPECT_EQ(router.Find("GET", "/v1/models/org/name").parameter, "org/name");
  EXPECT_EQ(router.Find("GET", "/v1/models/org%2Fname%20x").parameter, "org/name x");
  EXPECT_EQ(router.Find("GET", "/v1/models/100%").parameter, "100%");
  EXPECT_EQ(router.Find("GET", "/v1/models").route->pattern, "/v1/models");
}

TEST(RouterTest, HeadFindsGet) {
  const Router router = MakeRouter();
  ASSERT_NE(router.Find("HEAD", "/v1/models").route, nullptr);
}

TEST(RouterTest, WrongMethodNamesTheRightOnes) {
  const Router router = MakeRouter();
  const Router::Match chat = router.Find("GET", "/v1/chat/completions");
  EXPECT_EQ(chat.route, nullptr);
  EXPECT_EQ(chat.allow, "POST");
  EXPECT_EQ(router.Find("POST", "/v1/models/x").allow, "GET, HEAD, DELETE");
}

TEST(RouterTest, UnknownPathMatchesNothing) {
  const Router router = MakeRouter();
  for (const char* path : {"/", "", "/v1", "/v1/models/", "/v1/modelsx", "/V1/models"}) {
    const Router::Match match = router.Find("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.allow, "") << path;
  }
}

}  // namespace
}  // namespace hexad
