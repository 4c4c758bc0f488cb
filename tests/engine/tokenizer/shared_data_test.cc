// Vocabularies and goldens of llama.cpp and of a JavaScript tokenizer, where HEXAD_DATA has them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "engine/weights/gguf.h"
#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

// tokenizer.json of Hugging Face: vocabulary, merges (strings or pairs) and added tokens.
TokenizerData FromTokenizerJson(const std::string& text, const std::string& pre) {
  const auto json = nlohmann::json::parse(text);
  TokenizerData data;
  data.pre = pre;
  const auto put = [&](const std::string& token, size_t id, TokenType type) {
    if (id >= data.tokens.size()) {
      data.tokens.resize(id + 1);
      data.types.resize(id + 1, TokenType::kUnused);
    }
    data.tokens[id] = token;
    data.types[id] = type;
  };
  for (const auto& [token, id] : json["model"]["vocab"].items()) put(token, id, TokenType::kNormal);
  for (const auto& added : json["added_tokens"]) {
    put(added["content"], added["id"],
        added["special"].get<bool>() ? TokenType::kControl : TokenType::kUserDefined);
  }
  for (const auto& merge : json["model"]["merges"]) {
    data.merges.push_back(merge.is_string()
                              ? merge.get<std::string>()
                              : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return data;
}

// llama.cpp's pairs of files: texts between marker lines, ids a line.
void CheckLlamaCpp(const Tokenizer& tokenizer, const std::string& name) {
  const std::string base = DataFolder() + "/llamacpp-vocab-goldens/ggml-vocab-" + name + ".gguf";
  const auto inputs = ReadFile(base + ".inp");
  const auto outputs = ReadFile(base + ".out");
  if (!inputs || !outputs) GTEST_SKIP() << base << ".inp is absent";
  constexpr std::string_view kMarker = "\n__ggml_vocab_test__\n";
  std::istringstream expected(*outputs);
  size_t begin = 0;
  int checked = 0;
  for (std::string line; std::getline(expected, line); ++checked) {
    const size_t end = inputs->find(kMarker, begin);
    ASSERT_NE(end, std::string::npos);
    const std::string text = inputs->substr(begin, end - begin);
    begin = end + kMarker.size();
    std::istringstream numbers(line);
    std::vector<int32_t> ids;
    for (int32_t id; numbers >> id;) ids.push_back(id);
    const auto tokens = tokenizer.Encode(text, {});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(Ids(*tokens), ids) << name << ": " << testing::PrintToString(text);
  }
  EXPECT_GT(checked, 30);
}

void CheckOracle(const Tokenizer& tokenizer, const std::string& name) {
  const auto lines =
      ReadFile(DataFolder() + "/tokenizers-hf-json/oracle-goldens/" + name + ".jsonl");
  if (!lines) GTEST_SKIP() << "no oracle goldens of " << name;
  std::istringstream stream(*lines);
  int checked = 0;
  for (std::string line; std::getline(stream, line); ++checked) {
    const auto golden = nlohmann::json::parse(line);
    const std::string text = golden["text"];
    const auto tokens = tokenizer.Encode(text, {.parse_special = true});
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    EXPECT_EQ(Ids(*tokens), golden["ids"].get<std::vector<int32_t>>()) << golden["id"];
    EXPECT_EQ(Decode(tokenizer, *tokens), text);
  }
  EXPECT_GT(checked, 100);
}

void CheckTokenizerJson(const std::string& folder, const std::string& vocabulary,
                        const std::string& pre) {
  const auto json = ReadXz(DataFolder() + "/tokenizers-hf-json/" + folder + "/tokenizer.json.xz");
  if (!json) GTEST_SKIP() << "no tokenizer.json.xz of " << folder << ", or no xz";
  const auto tokenizer = MakeTokenizer(FromTokenizerJson(*json, pre));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  CheckOracle(**tokenizer, folder);
  CheckLlamaCpp(**tokenizer, vocabulary);
}

TEST(SharedTokenizerData, Llama3FromTokenizerJson) {
  CheckTokenizerJson("llama3_1", "llama-bpe", "llama-bpe");
}

TEST(SharedTokenizerData, Qwen3FromTokenizerJson) { CheckTokenizerJson("qwen3", "qwen2", "qwen2"); }

void CheckGguf(const std::string& name) {
  const auto bytes =
      ReadXz(DataFolder() + "/llamacpp-vocab-goldens/ggml-vocab-" + name + ".gguf.xz");
  if (!bytes) GTEST_SKIP() << "no ggml-vocab-" << name << ".gguf.xz, or no xz";
  const auto file = GgufFile::Parse(std::as_bytes(std::span(*bytes)), name);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = Tokenizer::FromGguf(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  CheckLlamaCpp(**tokenizer, name);
}

TEST(SharedTokenizerData, Gpt2FromGguf) { CheckGguf("gpt-2"); }
TEST(SharedTokenizerData, LlamaSpmFromGguf) { CheckGguf("llama-spm"); }

}  // namespace
}  // namespace hexad
