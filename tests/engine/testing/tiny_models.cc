#include "tests/engine/testing/tiny_models.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "gtest/gtest.h"
#include "kernels/dequantize.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

class TensorMaker {
 public:
  TensorMaker(GgufWriter& writer, const TinyModelOptions& options)
      : writer_(writer), type_(options.type), random_(options.seed), blocks_(options.seed) {}

  void Matrix(const std::string& name, uint64_t in, uint64_t out) {
    const float deviation = 1.0f / std::sqrt(static_cast<float>(in));
    if (type_ == DType::kF32) {
      writer_.Tensor(name, {in, out}, Normal(in * out, deviation));
      return;
    }
    const bool halves = Info(type_).block_values == 1;
    writer_.Tensor(name, {in, out}, GgufTypeId(type_),
                   halves ? Halves(in * out, deviation) : Blocks(in, out, deviation));
  }
  void Norm(const std::string& name, uint64_t size) {
    std::vector<float> values = Normal(size, 0.2f);
    for (float& value : values) value += 1.0f;
    writer_.Tensor(name, {size}, values);
  }
  void Bias(const std::string& name, uint64_t size) {
    writer_.Tensor(name, {size}, Normal(size, 0.3f));
  }

 private:
  std::vector<float> Normal(uint64_t count, float deviation) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }
  std::vector<std::byte> Halves(uint64_t count, float deviation) {
    std::vector<std::byte> bytes;
    for (const float value : Normal(count, deviation)) {
      const auto bfloat = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      AppendBytes(bytes, type_ == DType::kF16 ? FloatToHalf(value) : bfloat);
    }
    return bytes;
  }
  // Any quants, with scales such that a block's values have that root mean square.
  std::vector<std::byte> Blocks(uint64_t in, uint64_t out, float deviation) {
    const DTypeInfo& info = Info(type_);
    std::vector<uint8_t> rows =
        blocks_.Rows(type_, static_cast<int64_t>(out), static_cast<int64_t>(in));
    std::vector<float> values(static_cast<size_t>(info.block_values));
    for (size_t block = 0; block < rows.size(); block += static_cast<size_t>(info.block_bytes)) {
      DequantizeRow(type_, &rows[block], info.block_values, values.data());
      float squares = 0;
      for (const float value : values) squares += value * value;
      const float root = std::sqrt(squares / static_cast<float>(values.size()));
      for (const int offset : ScaleOffsets(type_)) {
        uint16_t half;
        std::memcpy(&half, &rows[block + static_cast<size_t>(offset)], 2);
        half = FloatToHalf(HalfToFloat(half) * deviation / std::max(root, 1e-6f));
        std::memcpy(&rows[block + static_cast<size_t>(offset)], &half, 2);
      }
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(rows.data());
    return {bytes, bytes + rows.size()};
  }

  GgufWriter& writer_;
  const DType type_;
  std::mt19937 random_;
  RandomData blocks_;
};

void AddMetadata(const TinyModelOptions& options, GgufWriter& writer) {
  const std::string& arch = options.architecture;
  writer.Set("general.architecture", arch);
  writer.Set("general.name", "tiny " + arch);
  writer.Set(arch + ".block_count", options.layers);
  writer.Set(arch + ".context_length", options.context);
  writer.Set(arch + ".embedding_length", options.hidden);
  writer.Set(arch + ".feed_forward_length", options.ffn);
  writer.Set(arch + ".attention.head_count", kTinyHeads);
  writer.Set(arch + ".attention.head_count_kv", kTinyKvHeads);
  writer.Set(arch + ".attention.key_length", options.head_dim);
  writer.Set(arch + ".attention.value_length", options.head_dim);
  writer.Set(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  writer.Set(arch + ".rope.freq_base", 10000.0f);
  if (arch == "gemma3") writer.Set("gemma3.attention.sliding_window", options.window);
}

}  // namespace

GgufWriter TinyModelWriter(const TinyModelOptions& options) {
  GgufWriter writer;
  AddMetadata(options, writer);
  TensorMaker make(writer, options);
  const bool gemma = options.architecture == "gemma3";
  const uint64_t query = kTinyHeads * options.head_dim;
  const uint64_t key = kTinyKvHeads * options.head_dim;
  make.Matrix("token_embd.weight", options.hidden, options.vocabulary);
  make.Norm("output_norm.weight", options.hidden);
  if (!options.tied_head) make.Matrix("output.weight", options.hidden, options.vocabulary);
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    make.Norm(blk + "attn_norm.weight", options.hidden);
    make.Matrix(blk + "attn_q.weight", options.hidden, query);
    make.Matrix(blk + "attn_k.weight", options.hidden, key);
    make.Matrix(blk + "attn_v.weight", options.hidden, key);
    make.Matrix(blk + "attn_output.weight", query, options.hidden);
    if (options.architecture == "qwen2") {
      make.Bias(blk + "attn_q.bias", query);
      make.Bias(blk + "attn_k.bias", key);
      make.Bias(blk + "attn_v.bias", key);
    }
    if (gemma) {
      make.Norm(blk + "attn_q_norm.weight", options.head_dim);
      make.Norm(blk + "attn_k_norm.weight", options.head_dim);
      make.Norm(blk + "post_attention_norm.weight", options.hidden);
      make.Norm(blk + "post_ffw_norm.weight", options.hidden);
    }
    make.Norm(blk + "ffn_norm.weight", options.hidden);
    make.Matrix(blk + "ffn_gate.weight", options.hidden, options.ffn);
    make.Matrix(blk + "ffn_up.weight", options.hidden, options.ffn);
    make.Matrix(blk + "ffn_down.weight", options.ffn, options.hidden);
  }
  return writer;
}

std::shared_ptr<const ModelFile> TinyModel(const TinyModelOptions& options) {
  static std::atomic<int> number{0};
  const std::string path = WriteTemporaryFile(
      "tiny_model_" + std::to_string(::getpid()) + "_" + std::to_string(++number) + ".gguf",
      TinyModelWriter(options).Build());
  auto model = OpenModelFile(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

std::string SharedDataFolder() {
  const char* folder = std::getenv("HEXAD_DATA");
  return folder != nullptr ? folder : "../shared/data";  // tests run in the source tree
}

}  // namespace hexad
