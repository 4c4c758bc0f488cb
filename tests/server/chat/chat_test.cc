#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "server/chat/command.h"
#include "tests/server/support/fake_openai.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Chatted {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs the command with `input` as all that is typed.
Chatted Chat(const std::string& url, const std::string& input, bool terminal = false,
             std::vector<std::string> args = {}) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(ends[1]);
  std::ostringstream out;
  std::ostringstream err;
  args.insert(args.begin(), {"--url", url});
  ChatEnvironment environment;
  environment.input_fd = ends[0];
  environment.terminal = terminal;
  Chatted chatted;
  chatted.code = ChatCommand(args, environment, out, err);
  ::close(ends[0]);
  chatted.out = out.str();
  chatted.err = err.str();
  return chatted;
}

// A handler that lists the model and leaves chats to `answer`.
FakeHttpServer::Handler WithModels(FakeHttpServer::Handler answer) {
  return [answer = std::move(answer)](const FakeRequest& request, FakeConnection& connection) {
    if (request.target == "/v1/models") return connection.Respond(200, {}, kFakeModels);
    answer(request, connection);
  };
}

nlohmann::json BodyOf(const FakeHttpServer& server, size_t chat) {
  size_t seen = 0;
  for (const FakeRequest& request : server.Requests()) {
    if (request.method == "POST" && seen++ == chat) return nlohmann::json::parse(request.body);
  }
  return nullptr;
}

TEST(Chat, PipedLinesAreQuestionsWithHistory) {
  std::atomic<int> call{0};
  FakeHttpServer server(WithModels([&](const FakeRequest&, FakeConnection& connection) {
    AnswerStream(connection, {"answer ", std::to_string(++call)});
  }));
  const Chatted chatted = Chat(server.Url(), "first\n\nsecond \\\nline", false,
                               {"--system", "be brief", "--temperature", "0.5"});
  EXPECT_EQ(chatted.code, 0) << chatted.err;
  EXPECT_EQ(chatted.out, "answer 1\nanswer 2\n");
  const nlohmann::json body = BodyOf(server, 1);
  EXPECT_EQ(body["model"], "fake-model");
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(
      body["messages"].dump(),
      R"([{"content":"be brief","role":"system"},{"content":"first","role":"user"},)"
      R"({"content":"answer 1","role":"assistant"},{"content":"second \nline","role":"user"}])");
}

TEST(Chat, CommandsInside) {
  FakeHttpServer server(WithModels(
      [&](const FakeRequest&, FakeConnection& connection) { AnswerStream(connection, {"ok"}); }));
  const Chatted chatted =
      Chat(server.Url(), "one\n/reset\n/system new rules\n/help\n/nope\ntwo\n/quit\nthree\n");
  EXPECT_EQ(chatted.out, "ok\nok\n");
  EXPECT_THAT(chatted.err, HasSubstr("/reset          forget"));
  EXPECT_THAT(chatted.err, HasSubstr("no command /nope"));
  EXPECT_EQ(BodyOf(server, 1)["messages"].dump(),
            R"([{"content":"new rules","role":"system"},{"content":"two","role":"user"}])");
  EXPECT_TRUE(BodyOf(server, 2).is_null());
}

TEST(Chat, NoServerAndBadArguments) {
  const Chatted chatted = Chat("http://127.0.0.1:" + std::to_string(ClosedPort()), "hi\n");
  EXPECT_EQ(chatted.code, 1);
  EXPECT_THAT(chatted.err, HasSubstr("Start it with: make serve"));
  EXPECT_EQ(Chat("x", "", false, {"--temperature", "hot"}).code, 2);
  EXPECT_EQ(Chat("x", "", false, {"--max-tokens", "-1"}).code, 2);
  EXPECT_EQ(Chat("x", "", false, {"positional"}).code, 2);
  EXPECT_THAT(Chat("x", "", false, {"--help"}).out,
              HasSubstr("echo 'What is a KV cache?' | hexad chat"));
}

TEST(Chat, FailuresAreSaidAndForgottenAndTheNextQuestionWorks) {
  std::atomic<int> call{0};
  FakeHttpServer server(WithModels([&](const FakeRequest&, FakeConnection& connection) {
    switch (call++) {
      case 0:  // before the first token
        return connection.Respond(503, {}, FakeError("overloaded"));
      case 1:  // in mid-stream
        BeginStream(connection);
        connection.Send(FakeChunk("half "));
        connection.Send("data: " + FakeError("engine lost") + "\n\n");
        return;
      case 2:  // cut off
        BeginStream(connection);
        connection.Send(FakeChunk("cut "));
        return;
      case 3:  // nonsense
        BeginStream(connection);
        connection.Send("data: {broken\n\n");
        return;
      case 4:
        return;  // closed without an answer
      default:
        AnswerStream(connection, {"fine"});
    }
  }));
  const Chatted chatted = Chat(server.Url(), "a\nb\nc\nd\ne\nf\n");
  EXPECT_EQ(chatted.code, 1);
  EXPECT_EQ(chatted.out, "\nhalf \ncut \n\n\nfine\n");
  EXPECT_THAT(chatted.err, HasSubstr("answered 503: overloaded"));
  EXPECT_THAT(chatted.err, HasSubstr("engine lost"));
  EXPECT_THAT(chatted.err, HasSubstr("the stream broke off\n"));
  EXPECT_THAT(chatted.err, HasSubstr("not a JSON object"));
  EXPECT_EQ(BodyOf(server, 5)["messages"].size(), 1u);
}

TEST(Chat, AStreamWithoutDoneOrUsageIsFineWhenItFinished) {
  FakeHttpServer server(WithModels([&](const FakeRequest&, FakeConnection& connection) {
    BeginStream(connection);
    connection.Send(FakeChunk("short") + FakeFinish("length"));
  }));
  const Chatted chatted = Chat(server.Url(), "q\n", true);
  EXPECT_EQ(chatted.err, "");
  EXPECT_THAT(chatted.out, HasSubstr("short\n(cut at the limit of tokens)"));
}

TEST(Chat, ATerminalIsSafeFromTheModel) {
  FakeHttpServer server(WithModels([&](const FakeRequest&, FakeConnection& connection) {
    AnswerStream(connection, {"\\u001b]0;title\\u0007 red"});
  }));
  EXPECT_THAT(Chat(server.Url(), "q\n", true).out, HasSubstr("> ]0;title red\n"));
  EXPECT_THAT(Chat(server.Url(), "q\n", false).out, HasSubstr("\033]0;title\a red"));
}

TEST(Chat, ReasoningIsDimAndNotInHistoryNorPiped) {
  FakeHttpServer server(WithModels([&](const FakeRequest&, FakeConnection& connection) {
    BeginStream(connection);
    connection.Send("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n");
    connection.Send(FakeChunk("so") + FakeFinish("stop") + kFakeDone);
  }));
  EXPECT_EQ(Chat(server.Url(), "q\n").out, "so\n");
  EXPECT_THAT(Chat(server.Url(), "q\nr\n", true).out, HasSubstr("\033[2mhm\033[0m\n\nso\n"));
  EXPECT_EQ(BodyOf(server, 2)["messages"][1]["content"], "so");
}

TEST(Chat, CtrlCStopsTheAnswerAndNotTheProgram) {
  std::atomic<int> call{0};
  std::atomic<bool> server_saw_it{false};
  FakeHttpServer server(WithModels([&](const FakeRequest&, FakeConnection& connection) {
    if (call++ > 0) return AnswerStream(connection, {"second"});
    BeginStream(connection);
    connection.Send(FakeChunk("endless"));
    ::kill(::getpid(), SIGINT);
    server_saw_it = connection.WaitForPeerToLeave();
  }));
  const Chatted chatted = Chat(server.Url(), "one\ntwo\n", true);
  EXPECT_EQ(chatted.code, 0);
  EXPECT_THAT(chatted.out, HasSubstr("(stopped)\n"));
  EXPECT_THAT(chatted.out, HasSubstr("second\n"));
  EXPECT_EQ(call, 2);
}

}  // namespace
}  // namespace hexad
