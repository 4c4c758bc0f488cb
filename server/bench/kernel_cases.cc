#include "server/bench/kernel_cases.h"

#include <algorithm>
#include <charconv>

#include "server/bench/bench_values.h"

namespace hexad {
namespace {

constexpr KernelModel kModels[] = {
    {"qwen05b", 896, 4864, 14, 2, 64, 151936, false},
    {"llama1b", 2048, 8192, 32, 8, 64, 128256, false},
    {"smollm2-135m", 576, 1536, 9, 3, 64, 49152, false},
    {"gemma-270m", 640, 2048, 4, 1, 256, 262144, true},
};

struct OpInfo {
  const char* name;
  const char* about;
};
constexpr OpInfo kOps[kKernelOps] = {
    {"qkv", "queries, keys and values, as one matrix"},
    {"attention-output", "the product behind attention"},
    {"ffn-gated", "gate and up with the gate's function"},
    {"ffn-down", "the product behind the gate"},
    {"logits", "the vocabulary's product, greatest logit"},
    {"attention-decode", "a query each of N sequences at 4,096"},
    {"attention-prefill", "N queries of one sequence from 0 on"},
    {"attention-cascade", "a query each of N: 2,048 shared, 64 own"},
    {"norm", "residual, norm, input of a product"},
    {"rope-store", "RoPE of q and k, k and v into the cache"},
    {"quantize", "rows as a product's input"},
    {"team", "an empty job of 64 pieces"},
};

constexpr int32_t kAllTokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 512};

absl::Status Unknown(const std::string& what, const std::string& name, const std::string& known) {
  return absl::InvalidArgumentError("there is no " + what + " \"" + name + "\": all, " + known);
}

absl::StatusOr<std::vector<KernelOp>> SelectOps(const std::string& list) {
  std::vector<KernelOp> ops;
  std::string known;
  for (const OpInfo& op : kOps) known += (known.empty() ? "" : ", ") + std::string(op.name);
  for (const std::string& name : SplitList(list)) {
    bool found = name == "all";
    for (int i = 0; i < kKernelOps; ++i) {
      const auto op = static_cast<KernelOp>(i);
      if (name != "all" && name != kOps[i].name) continue;
      found = true;
      if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
    }
    if (!found) return Unknown("op", name, known);
  }
  return ops;
}

absl::StatusOr<std::vector<const KernelModel*>> SelectModels(const std::string& list) {
  std::vector<const KernelModel*> models;
  std::string known;
  for (const KernelModel& model : kModels) {
    known += (known.empty() ? "" : ", ") + std::string(model.name);
  }
  for (const std::string& name : SplitList(list)) {
    bool found = false;
    for (const KernelModel& model : kModels) {
      if (name != "all" && name != model.name) continue;
      found = true;
      models.push_back(&model);
    }
    if (!found) return Unknown("model", name, known);
  }
  return models;
}

absl::StatusOr<std::vector<DType>> SelectFormats(const std::string& list) {
  std::vector<DType> formats;
  for (const std::string& name : SplitList(list)) {
    if (name == "all") {
      formats.clear();
      for (int i = 0; i <= static_cast<int>(DType::kIQ4_NL); ++i) {
        formats.push_back(static_cast<DType>(i));
      }
      break;
    }
    const absl::StatusOr<DType> type = ParseDType(name);
    if (!type.ok()) return type.status();
    formats.push_back(*type);
  }
  return formats;
}

absl::StatusOr<std::vector<int32_t>> SelectTokens(const std::string& list) {
  if (list == "all") return std::vector<int32_t>(std::begin(kAllTokens), std::end(kAllTokens));
  std::vector<int32_t> tokens;
  for (const std::string& text : SplitList(list)) {
    int32_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end || value < 1 || value > 4096) {
      return absl::InvalidArgumentError("--tokens are all or numbers up to 4096, not \"" + text +
                                        "\"");
    }
    tokens.push_back(value);
  }
  return tokens;
}

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

struct Selection {
  std::vector<KernelOp> ops;
  std::vector<const KernelModel*> models;
  std::vector<DType> formats, kv;
  std::vector<Activations> activations;
  std::vector<int32_t> tokens;
};

void AddProducts(const Selection& chosen, KernelOp op, const KernelModel& model,
                 std::vector<KernelCase>& cases) {
  for (const DType format : chosen.formats) {
    if (ProductShape(op, model).in % Info(format).block_values != 0) continue;
    bool float_done = false;
    for (Activations activations : chosen.activations) {
      if (IsFloat(format) && float_done) continue;
      float_done = true;
      if (IsFloat(format)) activations = Activations::kF32;
      for (const int32_t tokens : chosen.tokens) {
        cases.push_back({op, &model, format, activations, tokens});
      }
    }
  }
}

}  // namespace

std::span<const KernelModel> KernelModels() { return kModels; }
const char* KernelOpName(KernelOp op) { return kOps[static_cast<size_t>(op)].name; }
const char* KernelOpAbout(KernelOp op) { return kOps[static_cast<size_t>(op)].about; }
bool IsProduct(KernelOp op) { return op <= KernelOp::kLogits; }
bool WorksInCaches(KernelOp op) { return op >= KernelOp::kNorm; }

KernelShape ProductShape(KernelOp op, const KernelModel& model) {
  const int64_t width = int64_t{model.heads} * model.head_dim;
  switch (op) {
    case KernelOp::kQkv:
      return {width + 2 * int64_t{model.kv_heads} * model.head_dim, model.hidden};
    case KernelOp::kAttentionOutput:
      return {model.hidden, width};
    case KernelOp::kFfnGated:
      return {2 * int64_t{model.ffn}, model.hidden};
    case KernelOp::kFfnDown:
      return {model.hidden, model.ffn};
    default:
      return {model.vocabulary, model.hidden};
  }
}

absl::StatusOr<std::vector<KernelCase>> SelectKernels(const KernelFilter& filter) {
  Selection chosen;
  absl::StatusOr<std::vector<KernelOp>> ops = SelectOps(filter.ops);
  if (!ops.ok()) return ops.status();
  chosen.ops = *std::move(ops);
  absl::StatusOr<std::vector<const KernelModel*>> models = SelectModels(filter.models);
  if (!models.ok()) return models.status();
  chosen.models = *std::move(models);
  absl::StatusOr<std::vector<DType>> formats = SelectFormats(filter.formats);
  if (!formats.ok()) return formats.status();
  chosen.formats = *std::move(formats);
  absl::StatusOr<std::vector<DType>> kv = SelectFormats(filter.kv);
  if (!kv.ok()) return kv.status();
  chosen.kv = *std::move(kv);
  absl::StatusOr<std::vector<int32_t>> tokens = SelectTokens(filter.tokens);
  if (!tokens.ok()) return tokens.status();
  chosen.tokens = *std::move(tokens);
  for (const std::string& name : SplitList(filter.activations)) {
    const absl::StatusOr<Activations> activations = ParseActivations(name);
    if (!activations.ok()) return activations.status();
    chosen.activations.push_back(*activations);
  }

  std::vector<KernelCase> cases;
  for (const KernelModel* model : chosen.models) {
    for (const KernelOp op : chosen.ops) {
      if (IsProduct(op)) {
        AddProducts(chosen, op, *model, cases);
      } else if (op == KernelOp::kTeam) {
        if (model == chosen.models.front()) {
          cases.push_back({op, model, DType::kF32, Activations::kF32, 1});
        }
      } else if (op <= KernelOp::kAttentionCascade || op == KernelOp::kRopeStore) {
        for (const DType type : chosen.kv) {
          for (const int32_t count : chosen.tokens) {
            // Sequences of their own at 4,096 positions: more would not fit small machines.
            if (op == KernelOp::kAttentionDecode && count > 32) continue;
            if (op == KernelOp::kAttentionCascade && (count < 2 || count > 64)) continue;
            cases.push_back({op, model, type, Activations::kF32, count});
          }
        }
      } else {
        for (const Activations activations : chosen.activations) {
          for (const int32_t count : chosen.tokens) {
            cases.push_back({op, model, DType::kF32, activations, count});
          }
        }
      }
    }
  }
  return cases;
}

Work WorkOf(const KernelCase& one) {
  const KernelModel& model = *one.model;
  const double tokens = one.tokens;
  const double width = static_cast<double>(model.heads) * model.head_dim;
  const int64_t kv_width = int64_t{model.kv_heads} * model.head_dim;
  Work work;
  if (IsProduct(one.op)) {
    const KernelShape shape = ProductShape(one.op, model);
    AddProduct(one.format, one.activations, static_cast<double>(shape.out * shape.in), tokens,
               work);
    return work;
  }
  const auto attend = [&](double pairs, double keys_read) {
    work.fp32_ops = 4 * width * pairs;
    work.bytes = 2 * static_cast<double>(RowBytes(one.format, kv_width)) * keys_read;
  };
  switch (one.op) {
    case KernelOp::kAttentionDecode:
      attend(tokens * kDecodeDepth, tokens * kDecodeDepth);
      break;
    case KernelOp::kAttentionPrefill:
      attend(tokens * (tokens + 1) / 2, tokens);
      break;
    case KernelOp::kAttentionCascade:
      attend(tokens * (kSharedDepth + kOwnDepth), kSharedDepth + tokens * kOwnDepth);
      break;
    case KernelOp::kRopeStore:
      work.bytes = tokens * (8 * width + 8 * static_cast<double>(kv_width) +
                             2 * static_cast<double>(RowBytes(one.format, kv_width)));
      break;
    case KernelOp::kNorm:
      work.bytes = tokens * 13 * model.hidden;  // x, h, x again, and a byte each
      break;
    case KernelOp::kQuantize:
      work.bytes = tokens * 5 * model.hidden;
      break;
    default:
      break;
  }
  return work;
}

}  // namespace hexad
