#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/http/http_fixture.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpServerTest, AnswersAndKeepsTheConnection) {
  HttpFixture f;
  RawClient client = f.Client();
  for (int i = 0; i < 3; ++i) {
    client.Get("/hello");
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(response.Header("connection"), "keep-alive");
    EXPECT_THAT(response.Header("x-request-id"), StartsWith("req-"));
  }
  EXPECT_EQ(f.server->stats().accepted_connections, 1u);
  EXPECT_EQ(f.server->stats().requests, 3u);
}

TEST(HttpServerTest, ConnectionCloseIsObeyed) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/hello", "Connection: close\r\n");
  EXPECT_EQ(client.ReadResponse().Header("connection"), "close");
  EXPECT_TRUE(client.ReadToEnd());
}

TEST(HttpServerTest, OldHttpIsAnsweredAndClosed) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Send("GET /hello HTTP/1.0\r\n\r\n");
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.body, "hello");
  EXPECT_EQ(response.Header("connection"), "close");
  EXPECT_TRUE(client.ReadToEnd());
}

TEST(HttpServerTest, HeadHasTheLengthButNoBody) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Send("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  const RawResponse response = client.ReadResponse(/*is_head=*/true);
  EXPECT_EQ(response.Header("content-length"), "5");
  client.Get("/hello");
  EXPECT_EQ(client.ReadResponse().body, "hello");
}

TEST(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpFixture f;
  RawClient client = f.Client();
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests += "GET /item/" + std::to_string(i) + "?q HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  client.Send(requests);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(client.ReadResponse().body, std::to_string(i) + "|q");
  }
}

TEST(HttpServerTest, BodiesByLengthAndChunks) {
  HttpFixture f;
  RawClient client = f.Client();
  const std::string large(3 * 1024 * 1024, 'z');
  client.Post("/echo", large);
  EXPECT_EQ(client.ReadResponse().body, large);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n4\r\nab\r\n\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().body, "ab\r\nc");
  client.Post("/echo", "");
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST(HttpServerTest, ExpectContinue) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 100);
  client.Send("body");
  EXPECT_EQ(client.ReadResponse().body, "body");
  // Refused at once instead of asking for the body.
  client.Send(
      "POST /nowhere HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 404);
}

TEST(HttpServerTest, UnknownPathsAndMethods) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/nowhere");
  RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, R"({"error":{"message":"Unknown request URL: GET /nowhere.",)"
                           R"("type":"invalid_request_error","param":null,"code":"unknown_url"}})");
  client.Get("/echo");
  response = client.ReadResponse();
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.Header("allow"), "POST");
  client.Get("/hello");
  EXPECT_EQ(client.ReadResponse().status, 200);
}

TEST(HttpServerTest, MediaTypeIsChecked) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n"
      "Content-Type: text/plain\r\n\r\n{}");
  EXPECT_EQ(client.ReadResponse().status, 415);
}

TEST(HttpServerTest, RequestIdIsEchoedWhenSane) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/hello", "X-Request-Id: mine-1\r\n");
  EXPECT_EQ(client.ReadResponse().Header("x-request-id"), "mine-1");
  client.Get("/hello", "X-Request-Id: " + std::string(500, 'x') + "\r\n");
  EXPECT_THAT(client.ReadResponse().Header("x-request-id"), StartsWith("req-"));
}

TEST(HttpServerTest, IdsMayHoldSlashes) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/item/org/model%3A1");
  EXPECT_EQ(client.ReadResponse().body, "org/model:1|");
}

TEST(HttpServerTest, ALostWriterAnswers500) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/lost");
  EXPECT_EQ(client.ReadResponse().status, 500);
}

TEST(HttpServerTest, AccessIsReported) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/item/a?b=c", "x-request-id: r7\r\n");
  client.ReadResponse();
  const auto access = f.accesses.Take();
  ASSERT_TRUE(access.has_value());
  EXPECT_EQ(access->method, "GET");
  EXPECT_EQ(access->path, "/item/a");
  EXPECT_EQ(access->route, "/item/{id}");
  EXPECT_EQ(access->request_id, "r7");
  EXPECT_EQ(access->status, 200);
  EXPECT_GT(access->response_bytes, 100u);
  EXPECT_THAT(access->peer, StartsWith("127.0.0.1:"));
}

TEST(HttpServerTest, ATakenPortIsExplained) {
  HttpFixture f;
  const auto second = HttpServer::Start({.port = f.server->port()}, Router());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  const std::string message(second.status().message());
  EXPECT_THAT(message, HasSubstr("127.0.0.1:" + std::to_string(f.server->port())));
  EXPECT_THAT(message, HasSubstr("listen.http"));
}

TEST(HttpServerTest, ABadAddressIsExplained) {
  const auto server = HttpServer::Start({.address = "example", .port = 0}, Router());
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HttpServerTest, StopClosesIdleConnectionsAndListening) {
  HttpFixture f;
  RawClient idle = f.Client();
  idle.Get("/hello");
  idle.ReadResponse();
  f.server->Stop(absl::Seconds(20));
  EXPECT_TRUE(idle.ReadToEnd());
  EXPECT_FALSE(f.Client().connected());
  EXPECT_EQ(f.server->stats().open_connections, 0);
}

}  // namespace
}  // namespace hexad
