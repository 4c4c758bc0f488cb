#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/http/http_fixture.h"

namespace hexad {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

TEST(HttpStreamTest, EventsFromAnotherThreadArriveWholeAndInOrder) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/stream");
  auto stream = f.streams.Take();
  ASSERT_TRUE(stream.has_value());
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) stream->Write("data: " + std::to_string(i) + "\n\n");
    stream->Finish();
  });
  const RawResponse response = client.ReadResponse();
  writer.join();
  EXPECT_EQ(response.Header("content-type"), "text/event-stream");
  EXPECT_TRUE(response.body_ended);
  EXPECT_EQ(response.body, expected);
  client.Get("/hello");
  EXPECT_EQ(client.ReadResponse().body, "hello");
}

TEST(HttpStreamTest, OldHttpGetsItUntilTheClose) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  auto stream = f.streams.Take();
  stream->Write("data: 1\n\n");
  stream->Finish();
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.Header("transfer-encoding"), "");
  EXPECT_EQ(response.Header("connection"), "close");
  EXPECT_EQ(response.body, "data: 1\n\n");
  EXPECT_TRUE(response.body_ended);
}

TEST(HttpStreamTest, AClientThatLeavesAnIdleStreamIsNoticed) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/stream");
  auto stream = f.streams.Take();
  stream->Write("data: 1\n\n");
  ASSERT_TRUE(client.ReadUntil("data: 1"));
  client.Close();
  EXPECT_EQ(f.closes.Take(), CloseReason::kClientGone);
  EXPECT_FALSE(stream->Write("data: 2\n\n"));
}

TEST(HttpStreamTest, AnAbortedStreamHasNoEnd) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/stream");
  auto stream = f.streams.Take();
  stream->Write("data: 1\n\n");
  stream->Abort();
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.body, "data: 1\n\n");
  EXPECT_FALSE(response.body_ended);
  EXPECT_TRUE(client.ReadToEnd());
}

TEST(HttpStreamTest, ASlowReaderIsClosedAndOthersAreNot) {
  HttpServerOptions options;
  options.limits.max_pending_bytes = 256 * 1024;
  HttpFixture f(options);
  RawClient slow(f.server->port(), /*receive_buffer=*/4096);
  slow.Get("/stream");
  auto stream = f.streams.Take();
  RawClient good = f.Client();
  good.Get("/stream");
  auto other = f.streams.Take();
  const std::string event(64 * 1024, 'e');
  int written = 0;
  while (written < 10000 && stream->Write(event)) ++written;
  EXPECT_LT(written, 10000);
  EXPECT_EQ(f.closes.Take(), CloseReason::kSlowReader);
  EXPECT_EQ(f.server->stats().slow_readers, 1u);
  other->Write("data: fine\n\n");
  other->Finish();
  EXPECT_EQ(good.ReadResponse().body, "data: fine\n\n");
}

TEST(HttpStreamTest, AReaderThatTakesNothingIsClosedInTime) {
  HttpServerOptions options;
  options.limits.write_timeout = absl::Milliseconds(100);
  options.limits.max_pending_bytes = 64 * 1024 * 1024;
  HttpFixture f(options);
  RawClient slow(f.server->port(), /*receive_buffer=*/4096);
  slow.Get("/stream");
  auto stream = f.streams.Take();
  stream->Write(std::string(32 * 1024 * 1024, 'e'));
  EXPECT_EQ(f.closes.Take(), CloseReason::kSlowReader);
}

TEST(HttpStreamTest, IdleStreamsAreKeptAlive) {
  HttpFixture f({},
                {.keep_alive_bytes = ": ping\n\n", .keep_alive_interval = absl::Milliseconds(20)});
  RawClient client = f.Client();
  client.Get("/stream");
  auto stream = f.streams.Take();
  EXPECT_TRUE(client.ReadUntil(": ping\n\n\r\n8\r\n: ping\n\n"));
  stream->Write("data: x\n\n");
  stream->Finish();
  EXPECT_TRUE(client.ReadUntil("data: x\n\n\r\n0\r\n\r\n"));
}

TEST(HttpStreamTest, StopWaitsForStreamsThatEnd) {
  HttpFixture f;
  RawClient client = f.Client();
  client.Get("/stream");
  auto stream = f.streams.Take();
  std::thread stop([&] { f.server->Stop(absl::Seconds(30)); });
  std::thread writer([&] {
    stream->Write("data: last\n\n");
    stream->Finish();
  });
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.body, "data: last\n\n");
  EXPECT_TRUE(response.body_ended);
  EXPECT_TRUE(client.ReadToEnd());
  stop.join();
  writer.join();
  EXPECT_EQ(f.closes.size(), 0u);
}

TEST(HttpStreamTest, StopTellsStreamsThatDoNotEnd) {
  HttpFixture f({}, {.stop_bytes = "data: stopping\n\n"});
  RawClient streaming = f.Client();
  streaming.Get("/stream");
  auto stream = f.streams.Take();
  RawClient waiting = f.Client();
  waiting.Post("/hold", "{}");
  auto held = f.held.Take();
  f.server->Stop(absl::Milliseconds(20));
  const RawResponse response = streaming.ReadResponse();
  EXPECT_EQ(response.body, "data: stopping\n\n");
  EXPECT_TRUE(streaming.ReadToEnd());
  EXPECT_EQ(waiting.ReadResponse().status, 503);
  EXPECT_EQ(f.closes.Take(), CloseReason::kServerStopping);
  EXPECT_EQ(f.closes.Take(), CloseReason::kServerStopping);
  EXPECT_FALSE(stream->Write("late"));  // writers may outlive the server's threads
}

TEST(HttpStreamTest, AThousandIdleStreamsAndThreeHundredThatLeave) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2200) GTEST_SKIP() << "only " << files.rlim_cur << " open files allowed";
  HttpFixture f;
  const int64_t before = ResidentBytes();
  std::vector<RawClient> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(f.Client());
    clients.back().Get("/stream");
  }
  ASSERT_TRUE(f.streams.WaitForCount(1000));
  std::vector<ResponseWriter> streams;
  for (int i = 0; i < 1000; ++i) {
    streams.push_back(*f.streams.Take());
    streams.back().Write("data: 1\n\n");
  }
  for (RawClient& client : clients) ASSERT_TRUE(client.ReadUntil("data: 1"));
  const int64_t grown = ResidentBytes() - before;
  RecordProperty("resident_bytes", std::to_string(grown));
  std::printf("1,000 idle streams with their clients: %.1f MB\n", static_cast<double>(grown) / 1e6);
  if (!kSanitized) {
    EXPECT_LT(grown, 60'000'000);
  }

  for (int i = 0; i < 300; ++i) clients[static_cast<size_t>(i) * 3].Close();
  EXPECT_TRUE(f.closes.WaitForCount(300));
  EXPECT_EQ(f.server->stats().clients_gone, 300u);
  int delivered = 0;
  for (ResponseWriter& stream : streams) {
    delivered += stream.Write("data: 2\n\n");
    stream.Finish();
  }
  EXPECT_EQ(delivered, 700);
  for (size_t i = 0; i < clients.size(); ++i) {
    if (i % 3 == 0 && i < 900) continue;
    ASSERT_TRUE(clients[i].ReadUntil("data: 2\n\n\r\n0\r\n\r\n")) << i;
  }
  clients.clear();
  f.server->Stop(absl::Seconds(20));
  EXPECT_EQ(f.server->stats().open_connections, 0);
}

}  // namespace
}  // namespace hexad
