#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "server/bench/command.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

constexpr char kModel[] = HEXAD_SOURCE_DIR "/configs/models/hexad-tiny.gguf";

struct Ran {
  int code;
  std::string out;
  std::string err;
};

Ran Bench(const std::vector<std::string>& args, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = BenchCommand(args, {}, in, out, err);
  return {code, out.str(), err.str()};
}

std::vector<nlohmann::json> Lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(BenchCommand, NamesWhatThereIs) {
  EXPECT_THAT(Bench({"--help"}).out, HasSubstr("hexad bench engine MODEL.gguf"));
  const Ran unknown = Bench({"kernel"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("engine, kernels, quality, step"));
  for (const char* name : {"engine", "kernels", "quality", "step"}) {
    const Ran help = Bench({name, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("hexad bench " + std::string(name)));
    EXPECT_EQ(Bench({name, "--nonsense"}).code, 2);
  }
}

TEST(BenchCommand, EngineMisused) {
  EXPECT_EQ(Bench({"engine"}).code, 2);
  EXPECT_EQ(Bench({"engine", kModel, "decode:batch=x"}).code, 2);
  EXPECT_EQ(Bench({"engine", kModel, "--threads", "-1"}).code, 2);
  EXPECT_EQ(Bench({"engine", kModel, "--repeats", "0"}).code, 2);
  EXPECT_EQ(Bench({"engine", kModel, "--kv", "q4_0"}).code, 2);
  EXPECT_EQ(Bench({"engine", "/nowhere.gguf"}).code, 1);
  EXPECT_THAT(Bench({"engine", kModel, "decode:depth=1048560"}).err, HasSubstr("context holds"));
}

TEST(BenchCommand, EngineTests) {
  const Ran ran =
      Bench({"engine", kModel, "prefill:tokens=40:depth=16", "decode:tokens=3",
             "decode:tokens=20:batch=3:depth=32", "decode:tokens=4:batch=2:depth=16:prompt=own",
             "--threads", "2", "--repeats", "2", "--chunk", "24", "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = Lines(ran.out);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0]["test"], "prefill:tokens=40:depth=16");
  EXPECT_EQ(lines[7]["test"], "decode:tokens=4:depth=16:batch=2:prompt=own");
  for (const auto& line : lines) EXPECT_GT(line["tokens_per_second"], 0.0);
  EXPECT_NEAR(lines[5]["tokens_per_second"].get<double>() * lines[5]["seconds"].get<double>(), 60,
              0.1);
}

TEST(BenchCommand, EngineTakesCommands) {
  const Ran ran = Bench({"engine", kModel, "--interactive", "--threads", "1"},
                        "run\nprepare decode:tokens=2\nrun\nrun\nprepare nonsense\nrun\n"
                        "prepare prefill:tokens=20\nrun\n");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = Lines(ran.out);
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_TRUE(lines[0].contains("ready"));
  EXPECT_TRUE(lines[1].contains("error"));
  EXPECT_EQ(lines[2]["prepared"], "decode:tokens=2:depth=0:batch=1");
  EXPECT_GT(lines[2]["work"]["bytes"], 0.0);
  EXPECT_EQ(lines[4]["test"], lines[3]["test"]);
  EXPECT_TRUE(lines[5].contains("error"));
  EXPECT_TRUE(lines[6].contains("error"));
  EXPECT_GT(lines[8]["seconds"], 0.0);
}

TEST(BenchCommand, Quality) {
  const std::string text = ::testing::TempDir() + "/bench_quality.txt";
  std::ofstream(text) << "Once upon a time there was a little girl. She had a red ball.\n";
  const Ran ran = Bench({"quality", kModel, text, "--kv", "f32", "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto lines = Lines(ran.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["activations"], "f32");
  EXPECT_EQ(lines[0]["difference"], 0.0);
  EXPECT_EQ(lines[1]["ids"], lines[0]["ids"]);
  EXPECT_NEAR(lines[1]["perplexity"].get<double>() / lines[0]["perplexity"].get<double>(), 1, 0.1);
  EXPECT_EQ(Bench({"quality", kModel}).code, 2);
  EXPECT_EQ(Bench({"quality", kModel, "/nowhere.txt"}).code, 1);
  EXPECT_EQ(Bench({"quality", kModel, text, "--kv", ""}).code, 2);
}

TEST(BenchCommand, Kernels) {
  const Ran ran = Bench({"kernels", "--op", "qkv,norm", "--model", "smollm2-135m", "--format",
                         "Q8_0", "--tokens", "1,2", "--milliseconds", "1", "--no-limits",
                         "--threads", "2", "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["results"].size(), 4u);
  EXPECT_EQ(json["results"][0]["op"], "qkv");
  EXPECT_EQ(json["results"][1]["ops"], 2.0 * 2 * 960 * 576);
  EXPECT_EQ(Bench({"kernels", "--op", "all", "--kv", "Q4_0"}).code, 2);
  EXPECT_EQ(Bench({"kernels", "more"}).code, 2);
}

TEST(BenchCommand, Step) {
  const Ran ran =
      Bench({"step", "--running", "4", "--context", "1024", "--steps", "50", "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(nlohmann::json::parse(ran.out).empty());
  EXPECT_EQ(Bench({"step", "--running", "4", "--context", "10"}).code, 2);
}

}  // namespace
}  // namespace hexad
