#include "tests/engine/testing/stories.h"

#include <cstring>
#include <fstream>
#include <iterator>

namespace hexad {
namespace {

std::vector<char> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Config {
  int32_t dim, hidden_dim, layers, heads, kv_heads, vocabulary, context;
};

// Consecutive fp32 tensors of the checkpoint.
class WeightReader {
 public:
  explicit WeightReader(std::vector<float> values) : values_(std::move(values)) {}
  std::span<const float> Take(size_t count) {
    if (count > values_.size() - next_) return {};
    next_ += count;
    return std::span(values_).subspan(next_ - count, count);
  }
  bool AtEnd() const { return next_ == values_.size(); }

 private:
  std::vector<float> values_;
  size_t next_ = 0;
};

void AddTokenizer(const std::vector<char>& file, int32_t vocabulary, StoriesModel& model,
                  GgufWriter& writer) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  size_t at = sizeof(int32_t);
  for (int32_t id = 0; id < vocabulary && at + 8 <= file.size(); ++id) {
    float score;
    int32_t length;
    std::memcpy(&score, file.data() + at, 4);
    std::memcpy(&length, file.data() + at + 4, 4);
    at += 8;
    std::string piece(file.data() + at, static_cast<size_t>(length));
    at += static_cast<size_t>(length);
    const bool byte = piece.size() == 6 && piece.starts_with("<0x");
    types.push_back(id == 0 ? 2 : id <= 2 ? 3 : byte ? 6 : 1);  // unknown, control, byte, normal
    scores.push_back(score);
    std::string token;  // GGUF spells spaces as SentencePiece does
    for (const char c : piece) c == ' ' ? token += "\xe2\x96\x81" : token += c;
    tokens.push_back(id == 1 ? "<s>" : id == 2 ? "</s>" : token);
    if (byte) piece = std::string(1, static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)));
    model.pieces.push_back(piece);
  }
  writer.Set("tokenizer.ggml.model", "llama");
  writer.Set("tokenizer.ggml.tokens", tokens);
  writer.Set("tokenizer.ggml.scores", scores);
  writer.Set("tokenizer.ggml.token_type", types);
  writer.Set("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.Set("tokenizer.ggml.eos_token_id", uint32_t{2});
}

void AddMetadata(const Config& config, GgufWriter& writer) {
  writer.Set("general.architecture", "llama");
  writer.Set("general.name", "stories260k");
  writer.Set("llama.block_count", static_cast<uint32_t>(config.layers));
  writer.Set("llama.context_length", static_cast<uint32_t>(config.context));
  writer.Set("llama.embedding_length", static_cast<uint32_t>(config.dim));
  writer.Set("llama.feed_forward_length", static_cast<uint32_t>(config.hidden_dim));
  writer.Set("llama.attention.head_count", static_cast<uint32_t>(config.heads));
  writer.Set("llama.attention.head_count_kv", static_cast<uint32_t>(config.kv_heads));
  writer.Set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.Set("llama.rope.dimension_count", static_cast<uint32_t>(config.dim / config.heads));
}

}  // namespace

absl::StatusOr<StoriesModel> ConvertStories(const std::string& checkpoint,
                                            const std::string& tokenizer) {
  const std::vector<char> file = ReadFile(checkpoint);
  Config config;
  if (file.size() < sizeof(config)) return absl::NotFoundError(checkpoint);
  std::memcpy(&config, file.data(), sizeof(config));
  std::vector<float> values((file.size() - sizeof(config)) / sizeof(float));
  std::memcpy(values.data(), file.data() + sizeof(config), values.size() * sizeof(float));
  WeightReader weights(std::move(values));

  StoriesModel model;
  GgufWriter writer;
  AddMetadata(config, writer);
  AddTokenizer(ReadFile(tokenizer), config.vocabulary, model, writer);

  const auto dim = static_cast<uint64_t>(config.dim);
  const auto ffn = static_cast<uint64_t>(config.hidden_dim);
  const uint64_t kv = dim / config.heads * config.kv_heads;
  const auto vocabulary = static_cast<uint64_t>(config.vocabulary);
  writer.Tensor("token_embd.weight", {dim, vocabulary}, weights.Take(dim * vocabulary));
  const auto a_layer = [&](const std::string& name, std::vector<uint64_t> dims) {
    uint64_t count = 1;
    for (const uint64_t d : dims) count *= d;
    for (int32_t layer = 0; layer < config.layers; ++layer) {
      writer.Tensor("blk." + std::to_string(layer) + "." + name, dims, weights.Take(count));
    }
  };
  a_layer("attn_norm.weight", {dim});
  a_layer("attn_q.weight", {dim, dim});
  a_layer("attn_k.weight", {dim, kv});
  a_layer("attn_v.weight", {dim, kv});
  a_layer("attn_output.weight", {dim, dim});
  a_layer("ffn_norm.weight", {dim});
  a_layer("ffn_gate.weight", {dim, ffn});
  a_layer("ffn_down.weight", {ffn, dim});
  a_layer("ffn_up.weight", {dim, ffn});
  writer.Tensor("output_norm.weight", {dim}, weights.Take(dim));
  weights.Take(static_cast<size_t>(config.context) * (dim / config.heads));  // RoPE tables
  if (!weights.AtEnd()) return absl::InvalidArgumentError("the checkpoint has another size");
  model.gguf = writer.Build();
  return model;
}

}  // namespace hexad
