// Tokenizer metadata of small GGUF files that the test writes itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "engine/tokenizer/tokenizer.h"
#include "engine/weights/gguf.h"
#include "tests/engine/tokenizer/test_vocabularies.h"

namespace hexad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// GGUF v3 without tensors; types as in the format's specification.
class GgufWriter final {
 public:
  void String(const std::string& key, const std::string& value) {
    Key(key, 8);
    Text(value);
  }
  void U32(const std::string& key, uint32_t value) {
    Key(key, 4);
    Raw(value);
  }
  void Bool(const std::string& key, bool value) {
    Key(key, 7);
    Raw(static_cast<uint8_t>(value));
  }
  void Strings(const std::string& key, const std::vector<std::string>& values) {
    Key(key, 9);
    Raw(uint32_t{8});
    Raw(static_cast<uint64_t>(values.size()));
    for (const std::string& value : values) Text(value);
  }
  template <typename T>
  void Numbers(const std::string& key, uint32_t type, const std::vector<T>& values) {
    Key(key, 9);
    Raw(type);
    Raw(static_cast<uint64_t>(values.size()));
    for (T value : values) Raw(value);
  }
  std::string Finish() const {
    std::string file = "GGUF";
    const uint32_t version = 3;
    const uint64_t counts[] = {0, count_};
    file.append(reinterpret_cast<const char*>(&version), sizeof version);
    file.append(reinterpret_cast<const char*>(counts), sizeof counts);
    file += body_;
    file.resize((file.size() + 31) / 32 * 32);
    return file;
  }

 private:
  void Key(const std::string& key, uint32_t type) {
    ++count_;
    Text(key);
    Raw(type);
  }
  void Text(const std::string& value) {
    Raw(static_cast<uint64_t>(value.size()));
    body_ += value;
  }
  template <typename T>
  void Raw(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string body_;
  uint64_t count_ = 0;
};

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const GgufWriter& writer) {
  const std::string bytes = writer.Finish();
  auto file = GgufFile::Parse(std::as_bytes(std::span(bytes)), "test.gguf");
  if (!file.ok()) return file.status();
  return Tokenizer::FromGguf(**file);
}

GgufWriter ScoreFile() {
  GgufWriter writer;
  writer.String("tokenizer.ggml.model", "llama");
  writer.Strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "▁a", "▁", "a"});
  writer.Numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -1, -2, -3});
  writer.Numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1, 1, 1});
  return writer;
}

TEST(TokenizerFromGguf, SentencePieceDefaults) {
  GgufWriter writer = ScoreFile();
  writer.String("tokenizer.chat_template", "{{ messages }}");
  const auto tokenizer = Load(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Pieces(**tokenizer, "a a", {.add_special = true}), ElementsAre("<s>", " a", " a"));
  EXPECT_EQ((*tokenizer)->chat_template(), "{{ messages }}");
  EXPECT_EQ((*tokenizer)->bos(), TokenId{1});
  EXPECT_EQ((*tokenizer)->eos_text(), "</s>");
}

TEST(TokenizerFromGguf, FlagsAndIdsOfTheFileCount) {
  GgufWriter writer = ScoreFile();
  writer.Bool("tokenizer.ggml.add_bos_token", false);
  writer.Bool("tokenizer.ggml.add_space_prefix", false);
  writer.U32("tokenizer.ggml.eos_token_id", 1);
  writer.U32("tokenizer.ggml.eot_token_id", 2);
  const auto tokenizer = Load(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Pieces(**tokenizer, "a", {.add_special = true}), ElementsAre("a"));
  EXPECT_THAT(Ids((*tokenizer)->end_of_generation()), ElementsAre(1, 2));
}

TEST(TokenizerFromGguf, ByteLevel) {
  GgufWriter writer;
  writer.String("tokenizer.ggml.model", "gpt2");
  writer.String("tokenizer.ggml.pre", "llama-bpe");
  writer.Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|eot_id|>"});
  writer.Numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 3});
  writer.Strings("tokenizer.ggml.merges", {"a b"});
  writer.U32("tokenizer.ggml.bos_token_id", 3);
  const auto tokenizer = Load(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Pieces(**tokenizer, "abb", {.add_special = true}),
              ElementsAre("<|eot_id|>", "ab", "b"));
  EXPECT_THAT(Ids((*tokenizer)->end_of_generation()), ElementsAre(3));
}

TEST(TokenizerFromGguf, ErrorsNameTheFileAndTheKey) {
  const auto message = [](const GgufWriter& writer) {
    return std::string(Load(writer).status().message());
  };
  GgufWriter none;
  EXPECT_FALSE(Load(none).ok());
  GgufWriter unknown;
  unknown.String("tokenizer.ggml.model", "bert");
  EXPECT_THAT(message(unknown), HasSubstr("bert"));
  GgufWriter no_tokens;
  no_tokens.String("tokenizer.ggml.model", "llama");
  EXPECT_THAT(message(no_tokens), HasSubstr("tokenizer.ggml.tokens"));
  GgufWriter bad_id = ScoreFile();
  bad_id.U32("tokenizer.ggml.bos_token_id", 77);
  EXPECT_THAT(message(bad_id), HasSubstr("77"));
  EXPECT_THAT(message(bad_id), HasSubstr("test.gguf"));
  GgufWriter bad_type;
  bad_type.String("tokenizer.ggml.model", "gpt2");
  bad_type.Strings("tokenizer.ggml.tokens", {"a"});
  bad_type.Numbers<int32_t>("tokenizer.ggml.token_type", 5, {9});
  EXPECT_THAT(message(bad_type), HasSubstr("token_type"));
  GgufWriter bad_pre;
  bad_pre.String("tokenizer.ggml.model", "gpt2");
  bad_pre.String("tokenizer.ggml.pre", "no-such");
  bad_pre.Strings("tokenizer.ggml.tokens", {"a"});
  EXPECT_THAT(message(bad_pre), HasSubstr("no-such"));
}

}  // namespace
}  // namespace hexad
