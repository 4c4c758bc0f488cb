#include "engine/models/reference_transformer.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "engine/models/transformer.h"
#include "kernels/layer_ops.h"
#include "kernels/matmul.h"
#include "kernels/reference/reference.h"

namespace hexad {
namespace {

struct FileMatrix {
  const GgufTensor* tensor = nullptr;
};

class ReferenceOps {
 public:
  using Matrix = FileMatrix;
  struct AttentionPlan {};           // plain loops need none
  using Input = std::vector<float>;  // the rows
  struct Output {
    const Matrix* weights;
    float* y;
  };
  struct Rope {
    const std::vector<int64_t>* positions = nullptr;
    const std::vector<float>* frequencies = nullptr;
  };

  Matrix Load(const GgufTensor& tensor) { return {&tensor}; }
  void Embed(const GgufTensor& embedding, const Matrix*, std::span<const TokenId> tokens,
             float* x) {
    EmbedFromFile(embedding, tokens, x);
  }
  void AddAndNorm(const AddAndNormArgs& args, std::initializer_list<const Matrix*> matrices,
                  Input& out) {
    const int64_t dim = (*matrices.begin())->tensor->dims[0];
    if (args.h != nullptr) {
      if (args.post_norm.weight != nullptr) Norm(args.post_norm, args.h, args.rows, dim, args.h);
      reference::AddInPlace(args.x, args.h, args.rows * dim);
    }
    out.resize(static_cast<size_t>(args.rows * dim));
    Norm(args.norm, args.x, args.rows, dim, out.data());
  }
  void Put(const float* x, int64_t rows, const Matrix& matrix, Input& out) {
    out.assign(x, x + rows * matrix.tensor->dims[0]);
  }
  void MatMul(const Input& x, std::initializer_list<Output> outputs) {
    for (const Output& output : outputs) {
      const GgufTensor& tensor = *output.weights->tensor;
      const int64_t rows = static_cast<int64_t>(x.size()) / tensor.dims[0];
      reference::MatMul(x.data(), rows, tensor.type, tensor.data.data(), tensor.dims[1],
                        tensor.dims[0], output.y);
    }
  }
  void GatedMatMul(const Input& x, const Matrix& gate, const Matrix& up, Activation activation,
                   const Matrix& next, Input& out) {
    const int64_t rows = static_cast<int64_t>(x.size()) / gate.tensor->dims[0];
    const int64_t values = rows * next.tensor->dims[0];
    out.resize(static_cast<size_t>(values));
    std::vector<float> ups(out.size());
    MatMul(x, {{&gate, out.data()}, {&up, ups.data()}});
    const auto op = activation == Activation::kSilu ? reference::SiluGate : reference::GeluGate;
    op(out.data(), ups.data(), values, out.data());
  }
  void Logits(const Input& x, const Matrix& head, float cap, std::span<LogitRow> rows) {
    const int64_t vocabulary = head.tensor->dims[1];
    std::vector<float> logits(rows.size() * static_cast<size_t>(vocabulary));
    MatMul(x, {{&head, logits.data()}});
    if (cap > 0) reference::Softcap(logits.data(), cap, static_cast<int64_t>(logits.size()));
    const float* own = logits.data();
    for (LogitRow& row : rows) {
      float best = -std::numeric_limits<float>::infinity();
      for (int64_t i = 0; i < vocabulary; ++i) {
        if (!(own[i] > best)) continue;
        best = own[i];
        row.best = static_cast<int32_t>(i);
      }
      if (row.logits != nullptr) std::copy(own, own + vocabulary, row.logits);
      own += vocabulary;
    }
  }
  void PrepareRope(const std::vector<int64_t>& positions, const std::vector<float>& frequencies,
                   Rope& rope) {
    rope = {&positions, &frequencies};
  }
  void PositionAndStore(const Rope& rope, const PositionArgs& args) {
    for (const HeadArgs* part : {&args.query, &args.key}) {
      if (part->values == nullptr) continue;
      if (part->bias != nullptr) {
        reference::AddBias(part->values, part->bias, args.rows, part->heads * args.head_dim);
      }
      if (part->norm.weight != nullptr) {
        Norm(part->norm, part->values, args.rows * part->heads, args.head_dim, part->values);
      }
      reference::Rope(args.rope, rope.positions->data(), rope.frequencies->data(),
                      static_cast<int64_t>(rope.frequencies->size()), 1.0f, args.rows, part->heads,
                      args.head_dim, part->values);
    }
    if (args.key.values == nullptr) return;
    if (args.value_bias != nullptr) {
      reference::AddBias(args.value, args.value_bias, args.rows, args.key.heads * args.head_dim);
    }
    reference::StoreKv(args.pool, args.sequences, args.key.values, args.value);
  }
  void PlanAttention(std::span<const KvSequence>, const KvBlockShape&, int32_t, int32_t,
                     AttentionPlan&) {}
  void Attention(const AttentionArgs& args, const AttentionPlan&) { reference::Attention(args); }
  void Scale(float* x, float factor, int64_t values) { reference::Scale(x, factor, values); }

 private:
  static void Norm(const NormWeights& norm, const float* x, int64_t rows, int64_t dim, float* out) {
    reference::RmsNorm(x, norm.weight, norm.offset, norm.epsilon, rows, dim, out);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeReferenceTransformer(
    std::shared_ptr<const ModelFile> file, const KvStorageOptions& kv) {
  absl::StatusOr<KvStorage> storage = KvStorage::Make(file->spec, kv);
  if (!storage.ok()) return storage.status();
  ReferenceOps ops;
  auto weights = std::make_shared<const TransformerWeights<FileMatrix>>(LoadWeights(*file, ops));
  return std::unique_ptr<Model>(std::make_unique<Transformer<ReferenceOps>>(
      std::move(file), std::move(weights), *std::move(storage), ops));
}

}  // namespace hexad
