#include "server/bench/load_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/server/support/fake_openai.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int code;
  std::string out;
  std::string err;
};

Ran Bench(const std::vector<std::string>& args, const BenchEnvironment& environment = {}) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = LoadBenchCommand(args, environment, out, err);
  return {code, out.str(), err.str()};
}

void Answer(const FakeRequest& request, FakeConnection& connection) {
  if (request.target == "/v1/models") return connection.Respond(200, {}, kFakeModels);
  AnswerStream(connection, {"a", "b", "c"});
}

TEST(LoadBenchCommand, RunsAndReports) {
  FakeHttpServer server(Answer);
  const Ran ran = Bench({"--url", server.Url(), "--requests", "6", "--concurrency", "2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("model      fake-model\n"));
  EXPECT_THAT(ran.out, HasSubstr("6 completed, 0 failed"));
  EXPECT_THAT(ran.out, HasSubstr("60 in (18 cached), 18 out\n"));
  EXPECT_THAT(ran.out, HasSubstr("TPOT"));
}

TEST(LoadBenchCommand, WritesJsonAndReadsDataSets) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("hexad-bench-" + std::to_string(::getpid())))
          .string();
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/d.jsonl") << "{\"prompt\":\"from the file\"}\n";
  FakeHttpServer server(Answer);
  BenchEnvironment environment;
  environment.api_key = "key";
  const Ran ran = Bench({"--url", server.Url() + "/v1", "--model", "mine", "--requests", "2",
                         "--dataset", folder + "/d.jsonl", "--json", folder + "/r.json"},
                        environment);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto requests = server.Requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].Header("authorization"), "Bearer key");
  EXPECT_THAT(requests[0].body, HasSubstr("from the file"));
  std::ifstream file(folder + "/r.json");
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["requests"]["completed"], 2);
  EXPECT_EQ(json["settings"]["model"], "mine");
  std::filesystem::remove_all(folder);
}

TEST(LoadBenchCommand, NoServerAndMisuse) {
  const Ran ran = Bench({"--url", "http://127.0.0.1:" + std::to_string(ClosedPort())});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("make serve"));
  EXPECT_THAT(Bench({"--help"}).out, HasSubstr("hexad bench --rate 5 --duration 2m"));
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--arrivals", "bursty"},
                                             {"--duration", "long"},
                                             {"--input-tokens", "many"},
                                             {"--requests", "-1"},
                                             {"--prefix-groups", "0"},
                                             {"--temperature", "3"},
                                             {"word"}}) {
    EXPECT_EQ(Bench(args).code, 2) << args[0];
  }
  EXPECT_EQ(Bench({"--dataset", "/no/such/file"}).code, 1);
}

TEST(LoadBenchCommand, FailuresShowInTheExitCode) {
  FakeHttpServer server([](const FakeRequest&, FakeConnection& connection) {
    connection.Respond(429, {}, FakeError("slow down"));
  });
  const Ran ran = Bench({"--url", server.Url(), "--model", "m", "--requests", "2"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("2 x http_429: slow down"));
}

}  // namespace
}  // namespace hexad
