// Real weights, a published answer: stories260k at temperature 0, token for token.

#include "tests/engine/testing/stories.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "engine/cpu_executor.h"
#include "engine/reference_executor.h"
#include "gtest/gtest.h"
#include "tests/engine/testing/step_driver.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

constexpr int32_t kBeginning = 1;
constexpr int kMostTokens = 256;  // llama2.c's default

// The text between the first command and the end of its code block.
std::string GoldenText(const std::string& path) {
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  const size_t command = text.find("-t 0.0\n");
  if (command == std::string::npos) return "";
  const size_t begin = command + 7;
  return text.substr(begin, text.find("\n```", begin) - begin);
}

class StoriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = SharedDataFolder() + "/stories260k";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
    auto stories = ConvertStories(folder + "/stories260K.bin", folder + "/tok512.bin");
    ASSERT_TRUE(stories.ok()) << stories.status();
    stories_ = *std::move(stories);
    golden_ = GoldenText(folder + "/GOLDEN-greedy.txt");
    ASSERT_GT(golden_.size(), 400u);
    auto gguf = GgufFile::Parse(stories_.gguf, "stories260k");
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    auto model = MakeModelFile(*std::move(gguf));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }

  std::string Tell(Executor& executor) {
    StepDriver driver(executor);
    SamplingParams greedy;
    greedy.temperature = 0;
    const size_t sequence = driver.Add({TokenId{kBeginning}}, greedy);
    const absl::Status status = driver.Generate(sequence, kMostTokens, 512);
    EXPECT_TRUE(status.ok()) << status;
    std::string text;
    for (const TokenId token : driver.output(sequence)) {
      if (token == TokenId{kBeginning}) break;
      text += stories_.pieces[static_cast<size_t>(token)];
    }
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  StoriesModel stories_;
  std::string golden_;
  std::shared_ptr<const ModelFile> model_;
};

TEST_F(StoriesTest, ReferenceExecutorTellsThePublishedStory) {
  ReferenceExecutorOptions options;
  options.pool_blocks = {32};
  const auto executor = MakeReferenceExecutor(model_, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ(Tell(**executor), golden_);
}

TEST_F(StoriesTest, CpuExecutorTellsThePublishedStory) {
  for (const DType kv_type : {DType::kF32, DType::kF16}) {
    CpuExecutorOptions options;
    options.threads = 2;
    options.kv_type = kv_type;
    options.pool_blocks = {32};
    const auto executor = MakeCpuExecutor(model_, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ(Tell(**executor), golden_);
  }
}

}  // namespace
}  // namespace hexad
