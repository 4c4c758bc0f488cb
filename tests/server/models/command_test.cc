#include "server/models/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/models/fixtures.h"

namespace hexad {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int code;
  std::string out;
  std::string err;
};

Ran RunModels(const std::vector<std::string>& args, const ModelsEnvironment& environment) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = ModelsCommand(args, environment, out, err);
  return {code, out.str(), err.str()};
}

TEST(ModelsCommand, HelpTeachesWithExamples) {
  EXPECT_THAT(RunModels({"--help"}, {}).out, HasSubstr("hexad models pull hf:OWNER/REPO:x.gguf"));
  for (const char* command : {"pull", "list", "inspect", "rm"}) {
    const Ran ran = RunModels({command, "--help"}, {});
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr("Examples:\n  hexad models " + std::string(command)));
  }
  EXPECT_EQ(RunModels({}, {}).code, 2);
  EXPECT_EQ(RunModels({"push"}, {}).code, 2);
  EXPECT_EQ(RunModels({"pull", "--nope"}, {}).code, 2);
  EXPECT_THAT(RunModels({"list"}, {}).err, HasSubstr("set HEXAD_CACHE or HOME"));
}

TEST(ModelsCommand, TheCacheFollowsTheEnvironment) {
  ModelsEnvironment environment;
  environment.home = "/users/a";
  EXPECT_EQ(*ModelsFolder(environment), "/users/a/.cache/hexad/models");
  environment.xdg_cache_home = "relative";
  EXPECT_EQ(*ModelsFolder(environment), "/users/a/.cache/hexad/models");
  environment.xdg_cache_home = "/xdg";
  EXPECT_EQ(*ModelsFolder(environment), "/xdg/hexad/models");
  environment.hexad_cache = "/disk";
  EXPECT_EQ(*ModelsFolder(environment), "/disk/models");
}

TEST(ModelsCommand, PullListRemove) {
  ScratchFolder folder;
  const std::string body = FakeGguf(4000);
  FakeHttpServer server([&](const FakeRequest& request, FakeConnection& connection) {
    ServeRange(request, connection, body, "\"v1\"");
  });
  ModelsEnvironment environment;
  environment.hexad_cache = folder.path();
  const std::string url = server.Url("/m.gguf");
  const Ran pulled = RunModels({"pull", url}, environment);
  ASSERT_EQ(pulled.code, 0) << pulled.err;
  EXPECT_EQ(ReadText(pulled.out.substr(0, pulled.out.size() - 1)), body);
  EXPECT_THAT(pulled.err, HasSubstr("got sha256 " + Sha256Of(body)));
  const Ran listed = RunModels({"list"}, environment);
  EXPECT_THAT(listed.out, HasSubstr(url + "  4.0 kB"));
  EXPECT_THAT(listed.out, HasSubstr("(hexad models pull smollm2-135m-instruct)"));
  EXPECT_EQ(RunModels({"rm", url}, environment).code, 0);
  EXPECT_THAT(RunModels({"list"}, environment).out, ::testing::Not(HasSubstr(url)));
  EXPECT_EQ(RunModels({"rm", url}, environment).code, 1);
  EXPECT_EQ(RunModels({"inspect", url}, environment).code, 1);
}

// The smallest GGUF with an architecture and one tensor.
std::string TinyGguf() {
  std::string text = "GGUF";
  const auto number = [&](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  };
  const auto string = [&](std::string_view s) {
    number(s.size(), 8);
    text += s;
  };
  number(3, 4);  // version
  number(1, 8);  // tensors
  number(6, 8);  // metadata
  string("general.architecture");
  number(8, 4);
  string("llama");
  for (const auto& [key, value] :
       {std::pair("llama.context_length", 512), std::pair("llama.block_count", 2),
        std::pair("llama.attention.head_count", 4), std::pair("llama.attention.head_count_kv", 2),
        std::pair("llama.embedding_length", 64)}) {
    string(key);
    number(4, 4);
    number(value, 4);
  }
  string("token_embd.weight");
  number(2, 4);
  number(64, 8);
  number(8, 8);
  number(0, 4);  // F32
  number(0, 8);
  while (text.size() % 32 != 0) text += '\0';
  return text + std::string(64 * 8 * 4, '\0');
}

TEST(ModelsCommand, InspectShowsShapeAndMemory) {
  ScratchFolder folder;
  ModelsEnvironment environment;
  environment.hexad_cache = folder.path();
  WriteText(folder / "tiny.gguf", TinyGguf());
  const Ran ran = RunModels({"inspect", folder / "tiny.gguf"}, environment);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("architecture    llama\n"));
  EXPECT_THAT(ran.out, HasSubstr("parameters      512\n"));
  EXPECT_THAT(ran.out, HasSubstr("1, 2.0 kB"));
  EXPECT_THAT(ran.out, HasSubstr("context         512 tokens\n"));
  EXPECT_THAT(ran.out, HasSubstr("chat template   none: completions only\n"));
  // 2 layers x 2 KV heads x (16 + 16) values x 2 bytes
  EXPECT_THAT(ran.out, HasSubstr("KV per token    256 B in f16\n"));
  EXPECT_THAT(ran.out, HasSubstr("131.1 kB for 512 tokens\n"));
  EXPECT_THAT(RunModels({"inspect", "--context", "100", folder / "tiny.gguf"}, environment).out,
              HasSubstr("25.6 kB for 100 tokens\n"));
  WriteText(folder / "bad.gguf", TinyGguf().substr(0, 100));
  EXPECT_EQ(RunModels({"inspect", folder / "bad.gguf"}, environment).code, 1);
}

}  // namespace
}  // namespace hexad
