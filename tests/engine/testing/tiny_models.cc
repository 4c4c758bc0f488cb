#include "tests/engine/testing/tiny_models.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "gtest/gtest.h"
#include "kernels/dequantize.h"

namespace hexad {
namespace {

class TensorMaker {
 public:
  TensorMaker(GgufWriter& writer, const TinyModelOptions& options)
      : writer_(writer), quantised_(options.quantised), random_(options.seed) {}

  void Matrix(const std::string& name, uint64_t in, uint64_t out) {
    const std::vector<float> values = Normal(in * out, 1.0f / std::sqrt(static_cast<float>(in)));
    if (quantised_) {
      writer_.Tensor(name, {in, out}, GgufTypeId(DType::kQ8_0), QuantiseQ8(values));
    } else {
      writer_.Tensor(name, {in, out}, values);
    }
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
  static std::vector<std::byte> QuantiseQ8(const std::vector<float>& values) {
    std::vector<std::byte> bytes;
    for (size_t begin = 0; begin < values.size(); begin += 32) {
      float largest = 0;
      for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[begin + i]));
      const uint16_t scale = FloatToHalf(largest / 127);
      AppendBytes(bytes, scale);
      for (size_t i = 0; i < 32; ++i) {
        const float rounded = std::round(values[begin + i] / HalfToFloat(scale));
        AppendBytes(bytes, static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f)));
      }
    }
    return bytes;
  }

  GgufWriter& writer_;
  bool quantised_;
  std::mt19937 random_;
};

void AddMetadata(const TinyModelOptions& options, GgufWriter& writer) {
  const std::string& arch = options.architecture;
  writer.Set("general.architecture", arch);
  writer.Set("general.name", "tiny " + arch);
  writer.Set(arch + ".block_count", options.layers);
  writer.Set(arch + ".context_length", options.context);
  writer.Set(arch + ".embedding_length", kTinyHidden);
  writer.Set(arch + ".feed_forward_length", kTinyFfn);
  writer.Set(arch + ".attention.head_count", kTinyHeads);
  writer.Set(arch + ".attention.head_count_kv", kTinyKvHeads);
  writer.Set(arch + ".attention.key_length", kTinyHeadDim);
  writer.Set(arch + ".attention.value_length", kTinyHeadDim);
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
  constexpr uint64_t kQuery = kTinyHeads * kTinyHeadDim;
  constexpr uint64_t kKey = kTinyKvHeads * kTinyHeadDim;
  make.Matrix("token_embd.weight", kTinyHidden, options.vocabulary);
  make.Norm("output_norm.weight", kTinyHidden);
  if (!options.tied_head) make.Matrix("output.weight", kTinyHidden, options.vocabulary);
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    make.Norm(blk + "attn_norm.weight", kTinyHidden);
    make.Matrix(blk + "attn_q.weight", kTinyHidden, kQuery);
    make.Matrix(blk + "attn_k.weight", kTinyHidden, kKey);
    make.Matrix(blk + "attn_v.weight", kTinyHidden, kKey);
    make.Matrix(blk + "attn_output.weight", kQuery, kTinyHidden);
    if (options.architecture == "qwen2") {
      make.Bias(blk + "attn_q.bias", kQuery);
      make.Bias(blk + "attn_k.bias", kKey);
      make.Bias(blk + "attn_v.bias", kKey);
    }
    if (gemma) {
      make.Norm(blk + "attn_q_norm.weight", kTinyHeadDim);
      make.Norm(blk + "attn_k_norm.weight", kTinyHeadDim);
      make.Norm(blk + "post_attention_norm.weight", kTinyHidden);
      make.Norm(blk + "post_ffw_norm.weight", kTinyHidden);
    }
    make.Norm(blk + "ffn_norm.weight", kTinyHidden);
    make.Matrix(blk + "ffn_gate.weight", kTinyHidden, kTinyFfn);
    make.Matrix(blk + "ffn_up.weight", kTinyHidden, kTinyFfn);
    make.Matrix(blk + "ffn_down.weight", kTinyFfn, kTinyHidden);
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
