#include "server/http/exchange.h"

#include <gtest/gtest.h>

#include <memory>

namespace hexad {
namespace {

struct Fixture {
  int wakes = 0;
  std::shared_ptr<Exchange> exchange = std::make_shared<Exchange>([this] { ++wakes; }, 100);
};

TEST(ExchangeTest, WritesBetweenTwoTakesWakeOnce) {
  Fixture f;
  ResponseWriter writer(f.exchange);
  EXPECT_TRUE(writer.BeginStream({}));
  EXPECT_TRUE(writer.Write("a"));
  EXPECT_TRUE(writer.Write("b"));
  EXPECT_EQ(f.wakes, 1);
  EXPECT_EQ(f.exchange->Take().data.size(), 2u);
  EXPECT_TRUE(writer.Write("c"));
  EXPECT_EQ(f.wakes, 2);
}

TEST(ExchangeTest, OnlyTheFirstAnswerCounts) {
  Fixture f;
  ResponseWriter writer(f.exchange);
  writer.Send({.status = 201});
  writer.Send({.status = 202});
  EXPECT_FALSE(writer.BeginStream({}));
  EXPECT_FALSE(writer.Write("late"));
  const Exchange::Output output = f.exchange->Take();
  EXPECT_EQ(output.whole->status, 201);
  EXPECT_TRUE(output.finished);
  EXPECT_FALSE(output.head.has_value());
}

TEST(ExchangeTest, PendingBytesAreBounded) {
  Fixture f;
  ResponseWriter writer(f.exchange);
  writer.BeginStream({});
  EXPECT_TRUE(writer.Write(std::string(60, 'x')));
  f.exchange->Take();  // still not sent
  EXPECT_FALSE(writer.Write(std::string(60, 'x')));
  EXPECT_FALSE(writer.Write("x"));
  EXPECT_TRUE(f.exchange->Take().overflow);
}

TEST(ExchangeTest, SentBytesMakeRoom) {
  Fixture f;
  ResponseWriter writer(f.exchange);
  writer.BeginStream({});
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(writer.Write(std::string(60, 'x')));
    EXPECT_FALSE(f.exchange->Take().overflow);
    f.exchange->SetUnsentBytes(0);
  }
}

TEST(ExchangeTest, CloseCallbackRunsOnceOrAtOnce) {
  Fixture f;
  ResponseWriter writer(f.exchange);
  int closes = 0;
  writer.OnClose([&](CloseReason reason) { closes += reason == CloseReason::kClientGone; });
  f.exchange->Close(CloseReason::kClientGone);
  f.exchange->Close(CloseReason::kSlowReader);
  EXPECT_EQ(closes, 1);
  writer.OnClose([&](CloseReason reason) { closes += reason == CloseReason::kClientGone; });
  EXPECT_EQ(closes, 2);
  EXPECT_FALSE(writer.BeginStream({}));
}

TEST(ExchangeTest, NoCloseCallbackAfterAnAnswer) {
  Fixture f;
  ResponseWriter writer(f.exchange);
  auto owned = std::make_shared<int>(0);
  writer.OnClose([owned](CloseReason) { ++*owned; });
  writer.Send({});
  f.exchange->Close(CloseReason::kClientGone);
  EXPECT_EQ(*owned, 0);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(ExchangeTest, LostWritersAnswer500) {
  Fixture f;
  {
    ResponseWriter writer(f.exchange);
    const ResponseWriter copy = writer;
  }
  EXPECT_EQ(f.exchange->Take().whole->status, 500);
}

TEST(ExchangeTest, LostWritersCutAStream) {
  Fixture f;
  {
    ResponseWriter writer(f.exchange);
    writer.BeginStream({});
  }
  EXPECT_TRUE(f.exchange->Take().aborted);
}

}  // namespace
}  // namespace hexad
