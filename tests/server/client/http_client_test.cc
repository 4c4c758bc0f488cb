#include "server/client/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>

#include "tests/server/support/fake_http_server.h"

namespace hexad {
namespace {

constexpr auto kWait = std::chrono::milliseconds(10000);

FetchedBody Get(const std::string& url, double timeout = 30, size_t limit = 1000) {
  HttpCall call;
  call.url = url;
  call.timeout_seconds = timeout;
  return Fetch(std::move(call), limit);
}

TEST(HttpClient, FetchesAndTellsFailuresApart) {
  FakeHttpServer server([](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/hang") {
      connection.WaitForPeerToLeave();
    } else if (request.target == "/cut") {
      connection.SendHead(200, {{"Content-Length", "100"}});
      connection.Send("half");
    } else if (request.target == "/nothing") {
      return;
    } else {
      connection.Respond(418, {}, std::string(500, 'x'));
    }
  });
  FetchedBody fetched = Get(server.Url("/ok"));
  EXPECT_EQ(fetched.outcome.end, TransferEnd::kComplete);
  EXPECT_EQ(fetched.outcome.status, 418);
  EXPECT_EQ(fetched.body.size(), 500u);
  EXPECT_EQ(Get(server.Url("/ok"), 30, 100).outcome.end, TransferEnd::kBroken);
  EXPECT_EQ(Get(server.Url("/hang"), 0.05).outcome.end, TransferEnd::kTimedOut);
  EXPECT_EQ(Get(server.Url("/cut")).outcome.end, TransferEnd::kBroken);
  EXPECT_EQ(Get(server.Url("/nothing")).outcome.end, TransferEnd::kBroken);
  EXPECT_EQ(Get("http://127.0.0.1:" + std::to_string(ClosedPort())).outcome.end,
            TransferEnd::kNotConnected);
  EXPECT_EQ(Get("gopher://x").outcome.end, TransferEnd::kNotConnected);
  EXPECT_EQ(Get("::::").outcome.end, TransferEnd::kNotConnected);
}

TEST(HttpClient, ManyAtOnceAndAnAbortThatTheServerSees) {
  std::atomic<int> left{0};
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    connection.SendHead(200, {});
    connection.Send("begun");
    if (connection.WaitForPeerToLeave()) ++left;
  });
  HttpClient client(32);
  std::vector<uint64_t> ids;
  int done = 0;
  size_t begun = 0;
  for (int i = 0; i < 20; ++i) {
    HttpCall call;
    call.url = server.Url("/" + std::to_string(i));
    call.body = "{}";
    call.on_body = [&](long, std::string_view) { return ++begun > 0; };
    ids.push_back(client.Start(std::move(call), [&](const HttpOutcome& outcome) {
      EXPECT_EQ(outcome.end, TransferEnd::kAborted);
      ++done;
    }));
  }
  EXPECT_EQ(client.active(), 20u);
  while (begun < 20) client.Poll(kWait);
  for (uint64_t id : ids) client.Abort(id);
  client.Abort(12345);
  while (client.active() > 0) client.Poll(kWait);
  EXPECT_EQ(done, 20);
}

TEST(HttpClient, AReadableDescriptorWakesIt) {
  FakeHttpServer server(
      [](const FakeRequest&, FakeConnection& connection) { connection.WaitForPeerToLeave(); });
  HttpClient client(1);
  HttpCall call;
  call.url = server.Url();
  client.Start(std::move(call), {});
  const int fd = ::eventfd(1, 0);
  client.Poll(std::chrono::hours(1), fd);  // would hang otherwise
  ::close(fd);
  EXPECT_EQ(client.active(), 1u);  // destroyed with a transfer under way
}

}  // namespace
}  // namespace hexad
