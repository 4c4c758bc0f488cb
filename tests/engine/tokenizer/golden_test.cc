// Our ids against those of Hugging Face tokenizers and sentencepiece over the same GGUF files:
// tests/tools/make_tokenizer_goldens.py writes them. Needs the models, so only with HEXAD_MODELS.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/weights/gguf.h"
#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

void CheckGoldens(const char* golden, const char* prefix) {
  const char* folder = std::getenv("HEXAD_MODELS");
  if (folder == nullptr) GTEST_SKIP() << "HEXAD_MODELS names no folder with GGUF files";
  std::string path;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.rfind(prefix, 0) == 0 && entry.path().extension() == ".gguf") path = entry.path();
  }
  if (path.empty()) GTEST_SKIP() << folder << " holds no " << prefix << "*.gguf";
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = Tokenizer::FromGguf(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto lines = ReadFile(std::string(HEXAD_SOURCE_DIR) + "/tests/golden/tokenizer/" + golden);
  ASSERT_TRUE(lines.has_value());
  std::istringstream stream(*lines);
  int checked = 0;
  for (std::string line; std::getline(stream, line); ++checked) {
    const auto expected = nlohmann::json::parse(line);
    const std::string text = expected["text"];
    const auto plain = (*tokenizer)->Encode(text, {});
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(Ids(*plain), expected["ids"].get<std::vector<int32_t>>()) << line;
    const auto special = (*tokenizer)->Encode(text, {.parse_special = true});
    ASSERT_TRUE(special.ok()) << special.status();
    EXPECT_EQ(Ids(*special), expected["special_ids"].get<std::vector<int32_t>>()) << line;
  }
  EXPECT_GT(checked, 100);
}

TEST(TokenizerGoldens, SmolLm2) { CheckGoldens("smollm2-135m-instruct.jsonl", "SmolLM2-135M"); }
TEST(TokenizerGoldens, Gemma3) { CheckGoldens("gemma-3-270m.jsonl", "gemma-3-270m"); }

}  // namespace
}  // namespace hexad
