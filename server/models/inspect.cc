#include "server/models/inspect.h"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/weights/gguf.h"
#include "kernels/types.h"
#include "server/models/file_io.h"

namespace hexad {
namespace {

// Sizes from a file may be anything: sums and products stop at the largest number.
int64_t Saturated(double value) {
  return value >= 9e18 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(value);
}

void PrintRow(std::ostream& out, std::string label, const std::string& value) {
  label.resize(std::max<size_t>(label.size(), 16), ' ');
  std::string shown;
  for (unsigned char c : value.substr(0, 300))
    shown += c < 32 || c == 127 ? ' ' : static_cast<char>(c);
  out << label << shown << "\n";
}

std::string Count(int64_t count) {
  std::string text = HumanBytes(count);
  text = text.substr(0, text.size() - 1);  // the B of bytes
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

struct TypeSum {
  int64_t tensors = 0;
  double bytes = 0;
};

void PrintTensors(const GgufFile& file, std::ostream& out) {
  std::map<std::string, TypeSum> types;
  double parameters = 0;
  double bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    double values = 1;
    for (int64_t dim : tensor.dims) values *= static_cast<double>(dim);
    parameters += values;
    bytes += static_cast<double>(tensor.data.size());
    TypeSum& sum = types[Info(tensor.type).name];
    ++sum.tensors;
    sum.bytes += static_cast<double>(tensor.data.size());
  }
  PrintRow(out, "parameters", Count(Saturated(parameters)));
  for (const auto& [name, sum] : types) {
    PrintRow(out, "tensors " + name,
             std::to_string(sum.tensors) + ", " + HumanBytes(Saturated(sum.bytes)));
  }
  PrintRow(out, "weights", HumanBytes(Saturated(bytes)));
}

void PrintKv(const GgufFile& file, const std::string& architecture, int64_t context,
             std::ostream& out) {
  const auto number = [&](const char* key, int64_t fallback) {
    absl::StatusOr<int64_t> value = file.Int(architecture + key);
    return value.ok() ? *value : fallback;
  };
  const int64_t model_context = number(".context_length", 0);
  const int64_t layers = number(".block_count", 0);
  const int64_t heads = std::max<int64_t>(number(".attention.head_count", 0), 1);
  const int64_t kv_heads = number(".attention.head_count_kv", heads);
  const int64_t head_size = number(".embedding_length", 0) / heads;
  const int64_t key = number(".attention.key_length", head_size);
  const int64_t value = number(".attention.value_length", head_size);
  if (model_context > 0) PrintRow(out, "context", std::to_string(model_context) + " tokens");
  if (layers > 0) PrintRow(out, "layers", std::to_string(layers));
  const double per_token = 2.0 * static_cast<double>(layers) * static_cast<double>(kv_heads) *
                           (static_cast<double>(key) + static_cast<double>(value));
  if (per_token <= 0) return;
  if (context == 0) context = model_context;
  PrintRow(out, "KV per token", HumanBytes(Saturated(per_token)) + " in f16");
  std::string total = HumanBytes(Saturated(per_token * static_cast<double>(context))) + " for " +
                      std::to_string(context) + " tokens";
  const int64_t window = number(".attention.sliding_window", 0);
  if (window > 0) {
    total += ", less with its sliding window of " + std::to_string(window);
  }
  PrintRow(out, "KV", total);
}

}  // namespace

absl::Status InspectModel(const std::string& path, int64_t context, std::ostream& out) {
  absl::StatusOr<std::unique_ptr<GgufFile>> opened = GgufFile::Open(path);
  if (!opened.ok()) return opened.status();
  const GgufFile& file = **opened;
  const std::string architecture = file.String("general.architecture").value_or("unknown");
  PrintRow(out, "path", path);
  PrintRow(out, "architecture", architecture);
  for (const auto& [label, key] :
       {std::pair("name", "general.name"), std::pair("licence", "general.license"),
        std::pair("tokenizer", "tokenizer.ggml.model"),
        std::pair("pre-tokenizer", "tokenizer.ggml.pre")}) {
    if (absl::StatusOr<std::string> value = file.String(key); value.ok()) {
      PrintRow(out, label, *value);
    }
  }
  if (const auto* tokens = file.Strings("tokenizer.ggml.tokens")) {
    PrintRow(out, "vocabulary", std::to_string(tokens->size()) + " tokens");
  }
  PrintRow(out, "chat template",
           file.String("tokenizer.chat_template").ok() ? "yes" : "none: completions only");
  PrintTensors(file, out);
  PrintKv(file, architecture, context, out);
  return absl::OkStatus();
}

}  // namespace hexad
