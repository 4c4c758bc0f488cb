#include "server/bench/load_generator.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "tests/server/support/fake_openai.h"

namespace hexad {
namespace {

Workload SmallWorkload(bool stream = true) {
  WorkloadOptions options;
  options.model = "m";
  options.input_tokens = *LengthDistribution::Parse("3");
  options.output_tokens = *LengthDistribution::Parse("2");
  options.stream = stream;
  return Workload(options);
}

int64_t CountGood(const LoadResult& result) {
  int64_t good = 0;
  for (const RequestRecord& record : result.records) good += record.error_kind.empty() ? 1 : 0;
  return good;
}

// Lets answers go only when `wanted` requests wait together, and remembers the most seen.
struct Gate {
  explicit Gate(int wanted) : wanted(wanted) {}
  void Pass() {
    std::unique_lock lock(mutex);
    most = std::max(most, ++waiting);
    if (waiting == wanted) {
      ++generation;
      waiting = 0;
      all_here.notify_all();
      return;
    }
    const int mine = generation;
    all_here.wait(lock, [&] { return generation != mine; });
  }
  const int wanted;
  std::mutex mutex;
  std::condition_variable all_here;
  int waiting = 0;
  int generation = 0;
  int most = 0;
};

TEST(LoadGenerator, AClosedLoopKeepsSoManyAtATime) {
  Gate gate(4);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  FakeHttpServer server([&](const FakeRequest&, FakeConnection& connection) {
    const int now = ++inside;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    gate.Pass();  // would hang with fewer than four
    --inside;
    AnswerStream(connection, {"a", "b"});
  });
  LoadOptions options;
  options.requests = 40;
  options.concurrency = 4;
  const LoadResult result = RunLoad({server.Url(), ""}, SmallWorkload(), options, {});
  EXPECT_EQ(result.records.size(), 40u);
  EXPECT_EQ(CountGood(result), 40);
  EXPECT_LE(most, 4);
  EXPECT_EQ(server.Requests().size(), 40u);
  for (const RequestRecord& record : result.records) {
    EXPECT_EQ(record.output_tokens, 2);
    EXPECT_GE(record.first_token, record.start);
    EXPECT_GE(record.end, record.first_token);
  }
}

TEST(LoadGenerator, AnOpenLoopDoesNotWaitForAnswers) {
  Gate gate(10);  // all ten must be there before one is answered
  FakeHttpServer server([&](const FakeRequest&, FakeConnection& connection) {
    gate.Pass();
    AnswerStream(connection, {"a"});
  });
  LoadOptions options;
  options.requests = 10;
  options.concurrency = 0;
  options.rate = 2000;
  options.poisson = false;
  const LoadResult result = RunLoad({server.Url(), ""}, SmallWorkload(), options, {});
  ASSERT_EQ(CountGood(result), 10);
  double last_start = 0;
  for (const RequestRecord& record : result.records) {
    last_start = std::max(last_start, record.start);
  }
  EXPECT_DOUBLE_EQ(last_start, 9.0 / 2000);  // the scheduled time, not when it was sent
}

TEST(LoadGenerator, ACappedOpenLoopCountsTheWaitInItsLatencies) {
  FakeHttpServer server(
      [&](const FakeRequest&, FakeConnection& connection) { AnswerStream(connection, {"a"}); });
  LoadOptions options;
  options.requests = 20;
  options.concurrency = 1;
  options.rate = 1e6;
  options.poisson = false;
  const LoadResult result = RunLoad({server.Url(), ""}, SmallWorkload(), options, {});
  ASSERT_EQ(CountGood(result), 20);
  // One after the other, all due at once: each ends after the one before, and waited for it.
  for (size_t i = 1; i < result.records.size(); ++i) {
    const RequestRecord& before = result.records[i - 1];
    const RequestRecord& record = result.records[i];
    EXPECT_GT(record.end - record.start, before.end - before.start - 1e-3);
  }
}

TEST(LoadGenerator, TheDurationEndsSending) {
  FakeHttpServer server(
      [&](const FakeRequest&, FakeConnection& connection) { AnswerStream(connection, {"a"}); });
  LoadOptions options;
  options.requests = 0;
  options.duration_seconds = 0.01;
  options.rate = 500;
  options.poisson = false;
  const LoadResult result = RunLoad({server.Url(), ""}, SmallWorkload(), options, {});
  EXPECT_EQ(result.records.size(), 5u);  // due at 0, 2, 4, 6, 8 ms
}

TEST(LoadGenerator, BadAnswersAreCountedAndTheRunGoesOn) {
  std::atomic<int> call{0};
  FakeHttpServer server([&](const FakeRequest&, FakeConnection& connection) {
    switch (call++ % 5) {
      case 0:
        return connection.Respond(500, {}, FakeError("boom"));
      case 1:
        BeginStream(connection);
        connection.Send(FakeChunk("a"));
        return;
      case 2:
        BeginStream(connection);
        connection.Send("data: " + FakeError("lost") + "\n\n");
        connection.WaitForPeerToLeave();
        return;
      case 3:
        connection.Reset();
        return;
      default:
        AnswerStream(connection, {"a"});
    }
  });
  LoadOptions options;
  options.requests = 20;
  options.concurrency = 3;
  const LoadResult result = RunLoad({server.Url(), ""}, SmallWorkload(), options, {});
  std::map<std::string, int> kinds;
  for (const RequestRecord& record : result.records) ++kinds[record.error_kind];
  EXPECT_EQ(kinds[""], 4);
  EXPECT_EQ(kinds["http_500"], 4);
  EXPECT_EQ(kinds["broken_stream"], 4);
  EXPECT_EQ(kinds["error_in_stream"], 4);
  EXPECT_EQ(kinds["connect"], 4);
}

TEST(LoadGenerator, AnInterruptAbortsWhatIsUnderWay) {
  const int fd = ::eventfd(0, EFD_NONBLOCK);
  std::atomic<int> begun{0};
  FakeHttpServer server([&](const FakeRequest&, FakeConnection& connection) {
    BeginStream(connection);
    connection.Send(FakeChunk("a"));
    if (++begun == 3) {
      const uint64_t one = 1;
      EXPECT_EQ(::write(fd, &one, sizeof(one)), 8);
    }
    connection.WaitForPeerToLeave();
  });
  LoadOptions options;
  options.requests = 100;
  options.concurrency = 3;
  options.interrupt_fd = fd;
  const LoadResult result = RunLoad({server.Url(), ""}, SmallWorkload(), options, {});
  ::close(fd);
  EXPECT_TRUE(result.interrupted);
  ASSERT_EQ(result.records.size(), 3u);
  for (const RequestRecord& record : result.records) EXPECT_EQ(record.error_kind, "aborted");
}

TEST(LoadGenerator, WholeAnswersAndNoServer) {
  FakeHttpServer server([&](const FakeRequest&, FakeConnection& connection) {
    connection.Respond(200, {},
                       R"({"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]})");
  });
  LoadOptions options;
  options.requests = 5;
  options.stream = false;
  EXPECT_EQ(CountGood(RunLoad({server.Url(), ""}, SmallWorkload(false), options, {})), 5);
  const LoadResult none = RunLoad({"http://127.0.0.1:" + std::to_string(ClosedPort()), ""},
                                  SmallWorkload(false), options, {});
  ASSERT_EQ(none.records.size(), 5u);
  EXPECT_EQ(none.records[0].error_kind, "connect");
}

}  // namespace
}  // namespace hexad
