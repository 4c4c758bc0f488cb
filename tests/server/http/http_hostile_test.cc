// Clients that break rules, stall, flood or leave. Each is answered or closed, and a second client
// beside it never notices.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/http/http_fixture.h"

namespace hexad {
namespace {

// The time runs from the first byte, so a slow machine cannot make these tests fail.
HttpServerOptions Impatient() {
  HttpServerOptions options;
  options.limits.header_timeout = absl::Milliseconds(100);
  options.limits.body_timeout = absl::Milliseconds(100);
  return options;
}

HttpServerOptions Small() {
  HttpServerOptions options;
  options.limits.max_header_bytes = 2048;
  options.limits.max_body_bytes = 4096;
  return options;
}

void ExpectAlive(HttpFixture* f) {
  RawClient client = f->Client();
  client.Get("/hello");
  EXPECT_EQ(client.ReadResponse().body, "hello");
}

TEST(HttpHostileTest, SlowHeaderIs408) {
  HttpFixture f(Impatient());
  RawClient client = f.Client();
  client.Send("GET /hello HTTP/1.1\r\nHost:");
  EXPECT_EQ(client.ReadResponse().status, 408);
  EXPECT_TRUE(client.ReadToEnd());
  ExpectAlive(&f);
}

TEST(HttpHostileTest, SlowBodyIs408) {
  HttpFixture f(Impatient());
  RawClient client = f.Client();
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Content-Length: 100\r\n\r\n{\"a\":");
  EXPECT_EQ(client.ReadResponse().status, 408);
  EXPECT_TRUE(client.ReadToEnd());
}

TEST(HttpHostileTest, SilentConnectionsAreClosed) {
  HttpServerOptions options;
  options.limits.idle_timeout = absl::Milliseconds(100);
  HttpFixture f(options);
  RawClient silent = f.Client();
  EXPECT_TRUE(silent.ReadToEnd());
  EXPECT_EQ(silent.buffer(), "");
}

TEST(HttpHostileTest, KeptConnectionsAreClosedWhenIdle) {
  HttpServerOptions options;
  options.limits.idle_timeout = absl::Seconds(1);
  HttpFixture f(options);
  RawClient idle = f.Client();
  idle.Get("/hello");
  EXPECT_EQ(idle.ReadResponse().status, 200);
  EXPECT_TRUE(idle.ReadToEnd());
  EXPECT_EQ(idle.buffer(), "");
}

TEST(HttpHostileTest, LargeHeadersAndBodies) {
  HttpFixture f(Small());
  RawClient header = f.Client();
  header.Get("/hello", "X: " + std::string(1 << 20, 'x') + "\r\n");
  EXPECT_EQ(header.ReadResponse().status, 431);
  RawClient body = f.Client();
  body.Post("/echo", std::string(1 << 20, 'x'));
  EXPECT_EQ(body.ReadResponse().status, 413);
  RawClient announced = f.Client();
  announced.Send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Content-Length: 1000000000000\r\n\r\n");
  EXPECT_EQ(announced.ReadResponse().status, 413);
  ExpectAlive(&f);
}

TEST(HttpHostileTest, GarbageIsRefused) {
  HttpFixture f;
  for (const char* bytes : {"\x16\x03\x01\x02\x00", "GET\r\n\r\n", "GET / HTTP/1.1\r\nA\r\n\r\n",
                            "GET / SPDY/9\r\n\r\n",
                            "POST / HTTP/1.1\r\nHost: h\r\n"
                            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc"}) {
    RawClient client = f.Client();
    client.Send(bytes);
    const int status = client.ReadResponse().status;
    EXPECT_TRUE(status == 400 || status == 505) << bytes << status;
    EXPECT_TRUE(client.ReadToEnd());
  }
  ExpectAlive(&f);
}

TEST(HttpHostileTest, AClientThatLeavesWhileWaitingIsNoticed) {
  HttpFixture f;
  RawClient orderly = f.Client();
  orderly.Post("/hold", "{}");
  const auto first = f.held.Take();
  orderly.Close();
  EXPECT_EQ(f.closes.Take(), CloseReason::kClientGone);

  RawClient reset = f.Client();
  reset.Post("/hold", "{}");
  const auto second = f.held.Take();
  reset.Reset();
  EXPECT_EQ(f.closes.Take(), CloseReason::kClientGone);

  RawClient half = f.Client();
  half.Post("/hold", "{}");
  const auto third = f.held.Take();
  half.CloseSending();
  EXPECT_EQ(f.closes.Take(), CloseReason::kClientGone);
  EXPECT_TRUE(half.ReadToEnd());
  EXPECT_EQ(f.server->stats().clients_gone, 3u);
}

TEST(HttpHostileTest, AnAnswerThatIsReadyReachesAHalfClosedClient) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/hello");
  client.CloseSending();
  EXPECT_EQ(client.ReadResponse().body, "hello");
  EXPECT_TRUE(client.ReadToEnd());
}

TEST(HttpHostileTest, PipeliningBehindAHeldRequestIsBounded) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Post("/hold", "{}");
  const auto held = f.held.Take();
  ASSERT_TRUE(held.has_value());
  std::string flood;
  for (int i = 0; i < 5000; ++i) flood += "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
  client.Send(flood);
  ExpectAlive(&f);
  ResponseWriter(*held).Send({.body = "held"});
  EXPECT_EQ(client.ReadResponse().body, "held");
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client.ReadResponse().body, "hello") << i;
}

TEST(HttpHostileTest, AResetBehindAFullPipelineIsNoticed) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Post("/hold", "{}");
  const auto held = f.held.Take();
  client.Send(std::string(300000, 'x'));
  client.Reset();
  EXPECT_EQ(f.closes.Take(), CloseReason::kClientGone);
}

TEST(HttpHostileTest, ConnectionsAreBounded) {
  HttpServerOptions options;
  options.limits.max_connections = 3;
  HttpFixture f(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(f.Client());
    clients.back().Get("/hello");
    EXPECT_EQ(clients.back().ReadResponse().status, 200);
  }
  RawClient refused = f.Client();
  const RawResponse response = refused.ReadResponse();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.Header("retry-after"), "1");
  clients[0].Get("/hello", "Connection: close\r\n");
  clients[0].ReadResponse();
  EXPECT_TRUE(clients[0].ReadToEnd());
  EXPECT_EQ(f.server->stats().refused_connections, 1u);
}

TEST(HttpHostileTest, BufferedBodiesAreBoundedTogether) {
  HttpServerOptions options;
  options.limits.max_buffered_body_bytes = 100000;
  HttpFixture f(options);
  RawClient first = f.Client();
  first.Post("/hold", std::string(90000, 'a'));
  auto held = f.held.Take();
  ASSERT_TRUE(held.has_value());
  RawClient second = f.Client();
  second.Post("/echo", std::string(20000, 'b'));
  EXPECT_EQ(second.ReadResponse().status, 503);
  held->Send({});
  EXPECT_EQ(first.ReadResponse().status, 200);
  f.accesses.WaitForCount(2);
  RawClient third = f.Client();
  third.Post("/echo", std::string(20000, 'b'));
  EXPECT_EQ(third.ReadResponse().status, 200);
}

}  // namespace
}  // namespace hexad
