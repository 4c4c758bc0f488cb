#include "engine/weights/gguf.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/testing/gguf_writer.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GgufWriter SmallFile(uint32_t version = 3) {
  GgufWriter writer(version);
  writer.Set("general.architecture", "llama");
  writer.Set("count", uint32_t{7});
  writer.Set("negative", int32_t{-7});
  writer.Set("ratio", 0.5f);
  writer.Set("yes", true);
  writer.Set("words", std::vector<std::string>{"one", "", "three"});
  writer.Set("numbers", std::vector<int32_t>{-1, 2});
  writer.Set("flags", std::vector<bool>{true, false});
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  writer.Tensor("first", {3, 2}, values);
  const std::vector<std::byte> block(34, std::byte{1});
  writer.Tensor("second", {32}, GgufTypeId(DType::kQ8_0), block);
  return writer;
}

std::string ErrorOf(std::span<const std::byte> bytes) {
  const auto file = GgufFile::Parse(bytes, "x.gguf");
  return file.ok() ? "" : std::string(file.status().message());
}

TEST(GgufTest, ReadsWhatWasWritten) {
  for (const uint32_t version : {2, 3}) {
    for (const uint32_t alignment : {8, 16, 32, 4096}) {
      const std::vector<std::byte> bytes = SmallFile(version).Build(alignment);
      const auto parsed = GgufFile::Parse(bytes, "x.gguf");
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      const GgufFile& file = **parsed;
      EXPECT_EQ(*file.String("general.architecture"), "llama");
      EXPECT_EQ(*file.Int("count"), 7);
      EXPECT_EQ(*file.Int("negative"), -7);
      EXPECT_EQ(*file.Float("ratio"), 0.5);
      EXPECT_TRUE(*file.Bool("yes"));
      EXPECT_THAT(*file.Strings("words"), ElementsAre("one", "", "three"));
      EXPECT_THAT(std::get<std::vector<int64_t>>(file.Array("numbers")->items), ElementsAre(-1, 2));
      EXPECT_EQ(std::get<std::vector<bool>>(file.Array("flags")->items),
                (std::vector<bool>{true, false}));
      ASSERT_EQ(file.tensors().size(), 2u);
      const GgufTensor* first = file.FindTensor("first");
      ASSERT_NE(first, nullptr);
      EXPECT_THAT(first->dims, ElementsAre(3, 2));
      float last = 0;
      std::memcpy(&last, first->data.data() + 20, sizeof(last));
      EXPECT_EQ(last, 6);
      EXPECT_EQ(file.FindTensor("second")->data.size(), 34u);
      EXPECT_EQ(file.FindTensor("second")->data[33], std::byte{1});
      EXPECT_EQ(file.FindTensor("third"), nullptr);
    }
  }
}

TEST(GgufTest, LookUpsNameTheKey) {
  const std::vector<std::byte> bytes = SmallFile().Build();
  const auto file = GgufFile::Parse(bytes, "x.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(absl::IsNotFound((*file)->Int("absent").status()));
  EXPECT_TRUE(absl::IsInvalidArgument((*file)->Int("ratio").status()));
  EXPECT_TRUE(absl::IsInvalidArgument((*file)->String("count").status()));
  EXPECT_THAT(std::string((*file)->Float("count").status().message()),
              AllOf(HasSubstr("x.gguf"), HasSubstr("\"count\"")));
  EXPECT_EQ((*file)->Strings("numbers"), nullptr);
  EXPECT_EQ((*file)->Array("count"), nullptr);
}

TEST(GgufTest, OpensFilesAndReportsWhatTheSystemSays) {
  const std::string path = WriteTemporaryFile("open_test.gguf", SmallFile().Build());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ((*file)->tensors().size(), 2u);
  EXPECT_TRUE(absl::IsNotFound(GgufFile::Open(path + ".absent").status()));
  EXPECT_FALSE(GgufFile::Open(::testing::TempDir()).ok());
  const std::string empty = WriteTemporaryFile("empty.gguf", {});
  EXPECT_TRUE(absl::IsInvalidArgument(GgufFile::Open(empty).status()));
  std::filesystem::remove(path);
  std::filesystem::remove(empty);
}

TEST(GgufTest, ReleasedPagesCanBeReadAgain) {
  const auto file = GgufFile::Open(WriteTemporaryFile("release.gguf", SmallFile().Build()));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::span<const std::byte> data = (*file)->tensors()[1].data;
  const std::vector<std::byte> before(data.begin(), data.end());
  (*file)->ReleasePages(data);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), before.begin(), before.end()));
  (*file)->ReleasePages();
  EXPECT_TRUE(std::equal(data.begin(), data.end(), before.begin(), before.end()));
}

TEST(GgufTest, EveryTruncationIsAnError) {
  const std::vector<std::byte> bytes = SmallFile().Build();
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly that size, so that reading on is caught by the sanitizer.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(GgufFile::Parse(cut, "x.gguf").ok()) << length << " bytes";
  }
}

TEST(GgufTest, FlippedBytesNeverCrash) {
  const std::vector<std::byte> bytes = SmallFile().Build();
  std::mt19937 random(20260801);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> damaged = bytes;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random() % 256);
    }
    const auto file = GgufFile::Parse(damaged, "x.gguf");
    if (!file.ok()) {
      ++refused;
      continue;
    }
    for (const GgufTensor& tensor : (*file)->tensors()) {  // what is accepted can be read
      unsigned sum = 0;
      for (const std::byte b : tensor.data) sum += static_cast<unsigned>(b);
      EXPECT_GE(sum, 0u);
    }
  }
  EXPECT_GT(refused, 5000);
}

TEST(GgufTest, RefusesWhatIsNoGguf) {
  std::vector<std::byte> bytes = SmallFile().Build();
  bytes[0] = std::byte{'X'};
  EXPECT_THAT(ErrorOf(bytes), AllOf(HasSubstr("x.gguf"), HasSubstr("byte 0"), HasSubstr("magic")));
  bytes = SmallFile(1).Build();
  EXPECT_THAT(ErrorOf(bytes), AllOf(HasSubstr("byte 4"), HasSubstr("versions 2 and 3")));
  bytes = SmallFile(0x03000000).Build();
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("big-endian"));
  EXPECT_TRUE(absl::IsUnimplemented(GgufFile::Parse(bytes, "x.gguf").status()));
}

TEST(GgufTest, RefusesHugeCountsBeforeAllocating) {
  std::vector<std::byte> bytes = SmallFile().Build();
  for (const size_t place : {size_t{8}, size_t{16}}) {
    for (const uint64_t count : {~uint64_t{0}, uint64_t{1} << 40, uint64_t{1000}}) {
      std::vector<std::byte> damaged = bytes;
      std::memcpy(damaged.data() + place, &count, sizeof(count));
      EXPECT_THAT(ErrorOf(damaged), HasSubstr("the number of")) << place << " " << count;
    }
  }
  for (const uint32_t item : {0u, 5u, 6u, 7u, 8u, 12u}) {
    GgufWriter writer;
    std::vector<std::byte> value;
    AppendBytes(value, item);
    AppendBytes(value, uint64_t{1} << 60);
    writer.SetRaw("big", 9, value);
    EXPECT_THAT(ErrorOf(writer.Build()), AllOf(HasSubstr("\"big\""), HasSubstr("length")));
  }
  GgufWriter writer;
  std::vector<std::byte> value;
  AppendBytes(value, ~uint64_t{0});
  writer.SetRaw("text", 8, value);
  EXPECT_THAT(ErrorOf(writer.Build()), AllOf(HasSubstr("\"text\""), HasSubstr("length")));
}

TEST(GgufTest, RefusesWrongMetadata) {
  GgufWriter nested;
  std::vector<std::byte> value;
  AppendBytes(value, uint32_t{9});
  AppendBytes(value, uint64_t{0});
  nested.SetRaw("nest", 9, value);
  EXPECT_THAT(ErrorOf(nested.Build()), HasSubstr("arrays of arrays"));

  GgufWriter type;
  type.SetRaw("odd", 13, {});
  type.Set("pad", uint32_t{0});
  EXPECT_THAT(ErrorOf(type.Build()), AllOf(HasSubstr("\"odd\""), HasSubstr("13")));

  GgufWriter boolean;
  const std::vector<std::byte> two = {std::byte{2}};
  boolean.SetRaw("flag", 7, two);
  EXPECT_THAT(ErrorOf(boolean.Build()), HasSubstr("a bool is 0 or 1"));

  GgufWriter twice;
  twice.Set("key", uint32_t{1});
  twice.Set("key", uint32_t{2});
  EXPECT_THAT(ErrorOf(twice.Build()), HasSubstr("twice"));

  for (const uint32_t alignment : {0u, 1u, 3u, 24u, 1u << 21}) {
    GgufWriter writer;
    writer.Set("general.alignment", alignment);
    EXPECT_THAT(ErrorOf(writer.Build()), HasSubstr("general.alignment"));
  }
  GgufWriter text;
  text.Set("general.alignment", "32");
  EXPECT_THAT(ErrorOf(text.Build()), HasSubstr("general.alignment"));
}

TEST(GgufTest, RefusesWrongTensors) {
  const std::vector<std::byte> data(64);
  const auto error = [&](std::string_view name, std::vector<uint64_t> dims, uint32_t type) {
    GgufWriter writer;
    writer.Tensor(name, std::move(dims), type, data);
    return ErrorOf(writer.Build());
  };
  EXPECT_EQ(error("good", {4, 4}, 0), "");
  EXPECT_THAT(error("", {4, 4}, 0), HasSubstr("empty"));
  EXPECT_THAT(error(std::string(65, 'x'), {4, 4}, 0), HasSubstr("64 bytes"));
  EXPECT_THAT(error("none", {}, 0), HasSubstr("1 to 4"));
  EXPECT_THAT(error("five", {1, 1, 1, 1, 1}, 0), HasSubstr("1 to 4"));
  EXPECT_THAT(error("zero", {4, 0}, 0), HasSubstr("dimension 1"));
  const uint64_t half = uint64_t{1} << 32;
  EXPECT_THAT(error("overflow", {half, half, 16}, 0), HasSubstr("dimension"));
  EXPECT_THAT(error("wraps", {half, half}, 0), HasSubstr("more than the file can hold"));
  EXPECT_THAT(error("long", {17}, 0), HasSubstr("68 bytes"));
  EXPECT_THAT(error("blocks", {16}, 8), HasSubstr("multiple of 32"));
  EXPECT_THAT(error("iq", {256}, 16), AllOf(HasSubstr("IQ2_XXS"), HasSubstr("Q4_K_M")));
  EXPECT_THAT(error("odd", {4}, 777), HasSubstr("777"));

  GgufWriter twice;
  twice.Tensor("same", {4}, 0, std::span(data).first(16));
  twice.Tensor("same", {4}, 0, std::span(data).first(16));
  EXPECT_THAT(ErrorOf(twice.Build()), HasSubstr("twice"));
}

TEST(GgufTest, RefusesOffsetsThatAreUnalignedOverlappingOrOutside) {
  const std::vector<std::byte> data(64);
  GgufWriter writer;
  writer.Tensor("a", {16}, 0, data);
  writer.Tensor("b", {16}, 0, data);
  const std::vector<std::byte> bytes = writer.Build();
  // b's offset is the last thing before the data, which is 64-byte tensors back to back.
  const auto good = GgufFile::Parse(bytes, "x.gguf");
  ASSERT_TRUE(good.ok());
  const size_t place = (*good)->header().size() - sizeof(uint64_t);
  const auto with_offset = [&](uint64_t offset) {
    std::vector<std::byte> damaged = bytes;
    std::memcpy(damaged.data() + place, &offset, sizeof(offset));
    return ErrorOf(damaged);
  };
  EXPECT_EQ(with_offset(64), "");
  EXPECT_THAT(with_offset(63), HasSubstr("alignment"));
  EXPECT_THAT(with_offset(32), HasSubstr("ends at 64"));
  EXPECT_THAT(with_offset(96), HasSubstr("128 bytes of data"));
  EXPECT_THAT(with_offset(~uint64_t{31}), HasSubstr("128 bytes of data"));
}

// Real files: the vocabulary files of the shared data (metadata only), and models.
TEST(GgufTest, ReadsRealVocabularies) {
  const std::string folder = SharedDataFolder() + "/llamacpp-vocab-goldens";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  struct Expected {
    const char* name;
    const char* model;
    size_t tokens;
  };
  for (const Expected& expected :
       {Expected{"gpt-2", "gpt2", 50257}, Expected{"llama-spm", "llama", 32000}}) {
    const std::string packed = folder + "/ggml-vocab-" + expected.name + ".gguf.xz";
    if (!std::filesystem::exists(packed)) continue;
    FILE* pipe = popen(("xz -dc '" + packed + "'").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::vector<std::byte> bytes;
    std::vector<std::byte> chunk(1 << 16);
    for (size_t n; (n = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
      bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(n));
    }
    ASSERT_EQ(pclose(pipe), 0) << "xz is needed to read " << packed;
    const auto file = GgufFile::Parse(bytes, packed);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*(*file)->String("tokenizer.ggml.model"), expected.model);
    ASSERT_NE((*file)->Strings("tokenizer.ggml.tokens"), nullptr);
    EXPECT_EQ((*file)->Strings("tokenizer.ggml.tokens")->size(), expected.tokens);
  }
}

TEST(GgufTest, ReadsRealModels) {
  const char* folder = std::getenv("HEXAD_MODELS");
  if (folder == nullptr) GTEST_SKIP() << "HEXAD_MODELS names no folder of GGUF files";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = GgufFile::Open(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_NE((*file)->FindTensor("token_embd.weight"), nullptr) << entry.path();
  }
}

}  // namespace
}  // namespace hexad
