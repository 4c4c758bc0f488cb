// What a model's file must hold, and what is said when it does not.

#include "engine/models/model_file.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/models/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/testing/gguf_writer.h"
#include "tests/engine/testing/tiny_models.h"

namespace hexad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const GgufWriter& writer) {
  const std::vector<std::byte> bytes = writer.Build();
  auto file = GgufFile::Parse(bytes, "x.gguf");
  if (!file.ok()) return std::string(file.status().message());
  const auto model = MakeModelFile(*std::move(file));
  return model.ok() ? "" : std::string(model.status().message());
}

// A one-layer llama of which one thing is changed.
struct Change {
  std::function<bool(GgufWriter&, const std::string&)> tensor;  // true: instead of the usual one
  std::function<bool(GgufWriter&, const std::string&)> entry;
};

GgufWriter Changed(const Change& change) {
  GgufWriter writer;
  writer.Set("general.architecture", "llama");
  const auto entry = [&](const std::string& key, auto value) {
    if (!change.entry || !change.entry(writer, key)) writer.Set("llama." + key, value);
  };
  entry("block_count", uint32_t{1});
  entry("context_length", uint32_t{64});
  entry("embedding_length", uint32_t{16});
  entry("feed_forward_length", uint32_t{8});
  entry("attention.head_count", uint32_t{2});
  entry("attention.head_count_kv", uint32_t{1});
  entry("attention.layer_norm_rms_epsilon", 1e-5f);
  const auto tensor = [&](const std::string& name, std::vector<uint64_t> dims) {
    if (change.tensor && change.tensor(writer, name)) return;
    uint64_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    writer.Tensor(name, dims, std::vector<float>(count, 0.5f));
  };
  tensor("token_embd.weight", {16, 20});
  tensor("output_norm.weight", {16});
  tensor("blk.0.attn_norm.weight", {16});
  tensor("blk.0.attn_q.weight", {16, 16});
  tensor("blk.0.attn_k.weight", {16, 8});
  tensor("blk.0.attn_v.weight", {16, 8});
  tensor("blk.0.attn_output.weight", {16, 16});
  tensor("blk.0.ffn_norm.weight", {16});
  tensor("blk.0.ffn_gate.weight", {16, 8});
  tensor("blk.0.ffn_up.weight", {16, 8});
  tensor("blk.0.ffn_down.weight", {8, 16});
  return writer;
}

std::string WithEntry(const std::string& changed, auto value) {
  return ErrorOf(Changed({nullptr, [&](GgufWriter& writer, const std::string& key) {
                            if (key != changed) return false;
                            writer.Set("llama." + key, value);
                            return true;
                          }}));
}

TEST(ModelFileTest, EveryTensorIsNeededAndChecked) {
  EXPECT_EQ(ErrorOf(Changed({})), "");
  for (const std::string name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
        "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
        "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
        "blk.0.ffn_down.weight"}) {
    const auto missing = [&](GgufWriter&, const std::string& tensor) { return tensor == name; };
    EXPECT_THAT(ErrorOf(Changed({missing, nullptr})),
                AllOf(HasSubstr("x.gguf"), HasSubstr("\"" + name + "\"")));
    const auto wrong = [&](GgufWriter& writer, const std::string& tensor) {
      if (tensor != name) return false;
      writer.Tensor(name, {24, 3}, std::vector<float>(72));
      return true;
    };
    EXPECT_THAT(ErrorOf(Changed({wrong, nullptr})), HasSubstr("\""));
  }
}

TEST(ModelFileTest, ATensorWithoutAPlaceIsRefused) {
  const auto extra = [](GgufWriter& writer, const std::string& tensor) {
    if (tensor == "output_norm.weight") {
      writer.Tensor("blk.0.attn_q.bias", {16}, std::vector<float>(16));
    }
    return false;
  };
  EXPECT_THAT(ErrorOf(Changed({extra, nullptr})), HasSubstr("blk.0.attn_q.bias"));
}

TEST(ModelFileTest, MetadataIsChecked) {
  EXPECT_THAT(WithEntry("block_count", uint32_t{0}), HasSubstr("llama.block_count"));
  EXPECT_THAT(WithEntry("block_count", uint32_t{2000000}), HasSubstr("llama.block_count"));
  EXPECT_THAT(WithEntry("block_count", uint32_t{2}), HasSubstr("blk.1."));
  EXPECT_THAT(WithEntry("block_count", "one"), HasSubstr("integer"));
  EXPECT_THAT(WithEntry("embedding_length", uint32_t{0}), HasSubstr("embedding_length"));
  EXPECT_THAT(WithEntry("embedding_length", int32_t{-16}), HasSubstr("embedding_length"));
  EXPECT_THAT(WithEntry("attention.head_count", uint32_t{0}), HasSubstr("head_count"));
  EXPECT_THAT(WithEntry("attention.head_count", uint32_t{16}), HasSubstr("multiple of 8"));
  EXPECT_THAT(WithEntry("attention.head_count_kv", uint32_t{3}), HasSubstr("multiple"));
  EXPECT_THAT(WithEntry("context_length", uint32_t{0}), HasSubstr("context_length"));
  EXPECT_THAT(WithEntry("attention.layer_norm_rms_epsilon", std::nanf("")), HasSubstr("finite"));
  EXPECT_THAT(WithEntry("attention.layer_norm_rms_epsilon", -1.0f), HasSubstr("positive"));
  const auto also = [](const char* key, auto value) {
    return ErrorOf(Changed({nullptr, [=](GgufWriter& writer, const std::string& entry) {
                              if (entry == "block_count") writer.Set(key, value);
                              return false;
                            }}));
  };
  EXPECT_THAT(also("llama.rope.scaling.type", "yarn"), HasSubstr("yarn"));
  EXPECT_THAT(also("llama.rope.freq_base", 0.0f), HasSubstr("freq_base"));
  EXPECT_THAT(also("llama.rope.dimension_count", uint32_t{10}), HasSubstr("dimension_count"));
  EXPECT_THAT(also("llama.attention.value_length", uint32_t{16}), HasSubstr("values"));
  EXPECT_THAT(also("llama.expert_count", uint32_t{8}), HasSubstr("mixture"));
  EXPECT_THAT(also("split.count", uint32_t{2}), HasSubstr("split"));
  EXPECT_EQ(also("llama.rope.scaling.type", "none"), "");
}

TEST(ModelFileTest, AnUnknownArchitectureListsTheKnownOnes) {
  GgufWriter writer;
  writer.Set("general.architecture", "mamba");
  EXPECT_THAT(ErrorOf(writer), AllOf(HasSubstr("mamba"), HasSubstr("llama, qwen2, gemma3")));
  EXPECT_THAT(ErrorOf(GgufWriter()), HasSubstr("general.architecture"));
}

TEST(ModelFileTest, GemmaHasAFullGroupAndAWindowGroup) {
  TinyModelOptions options;
  options.architecture = "gemma3";
  options.layers = 13;
  const auto model = TinyModel(options);
  ASSERT_NE(model, nullptr);
  const ModelShape shape = MakeModelShape(*model, 32, DType::kF16, "id");
  ASSERT_EQ(shape.kv.groups.size(), 2u);
  EXPECT_EQ(shape.kv.block_tokens, 32);
  EXPECT_EQ(shape.kv.groups[0].kind, GroupKind::kFull);
  EXPECT_THAT(shape.kv.groups[0].layers, ElementsAre(5, 11));
  EXPECT_EQ(shape.kv.groups[1].kind, GroupKind::kWindow);
  EXPECT_EQ(shape.kv.groups[1].window_tokens, 20);
  EXPECT_EQ(shape.kv.groups[1].layers.size(), 11u);
  EXPECT_EQ(shape.kv.groups[0].bytes_per_token, 2 * 2 * 2 * 2 * 16);  // layers, k+v, bytes, heads
  EXPECT_EQ(shape.vocab_size, 96);
  EXPECT_EQ(shape.numerics_id, "id");
  EXPECT_EQ(shape.model_digest.size(), 64u);
  EXPECT_GT(shape.active_parameters, 96 * 64);
  EXPECT_GE(shape.weight_bytes, 4 * shape.active_parameters);
}

TEST(ModelFileTest, DigestsTellFilesApart) {
  const auto digest = [](TinyModelOptions options) { return TinyModel(options)->digest; };
  TinyModelOptions options;
  const std::string first = digest(options);
  EXPECT_EQ(first, digest(options));
  options.seed = 2;
  EXPECT_NE(first, digest(options));
  options.seed = 1;
  options.context = 1024;
  EXPECT_NE(first, digest(options));
}

TEST(ModelFileTest, DigestReadsLargeTensorsInSamples) {
  std::vector<std::byte> big(3 << 20);
  const auto digest = [&] {
    GgufWriter writer;
    writer.Tensor("big", {big.size() / 4}, 0, big);
    const std::vector<std::byte> bytes = writer.Build();
    return ModelDigest(**GgufFile::Parse(bytes, "big"));
  };
  const std::string zeros = digest();
  for (const size_t place : {size_t{0}, size_t{1} << 20, big.size() - 1}) {
    big[place] = std::byte{1};
    EXPECT_NE(digest(), zeros) << place;
    big[place] = std::byte{0};
  }
}

}  // namespace
}  // namespace hexad
