#include "engine/models/reference_transformer.h"

#include <initializer_list>
#include <utility>

#include "engine/models/transformer.h"
#include "kernels/reference/reference.h"

namespace hexad {
namespace {

struct FileMatrix {
  const GgufTensor* tensor = nullptr;
};

class ReferenceOps {
 public:
  using Matrix = FileMatrix;
  struct Output {
    const Matrix* weights;
    float* y;
  };
  struct Rope {
    const std::vector<int64_t>* positions = nullptr;
    const std::vector<float>* frequencies = nullptr;
  };

  Matrix Load(const GgufTensor& tensor) { return {&tensor}; }
  void MatMul(const float* x, int64_t rows, std::initializer_list<Output> outputs) {
    for (const Output& output : outputs) {
      const GgufTensor& tensor = *output.weights->tensor;
      reference::MatMul(x, rows, tensor.type, tensor.data.data(), tensor.dims[1], tensor.dims[0],
                        output.y);
    }
  }
  void PrepareRope(const std::vector<int64_t>& positions, const std::vector<float>& frequencies,
                   Rope& rope) {
    rope = {&positions, &frequencies};
  }
  void ApplyRope(RopeKind kind, const Rope& rope, int64_t rows, int64_t heads, int64_t head_dim,
                 float* x) {
    reference::Rope(kind, rope.positions->data(), rope.frequencies->data(),
                    static_cast<int64_t>(rope.frequencies->size()), 1.0f, rows, heads, head_dim, x);
  }
  void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
               const float* v) {
    reference::StoreKv(pool, sequences, k, v);
  }
  void Attention(const AttentionArgs& args) { reference::Attention(args); }
  void RmsNorm(const float* x, const float* weight, float offset, float epsilon, int64_t rows,
               int64_t dim, float* out) {
    reference::RmsNorm(x, weight, offset, epsilon, rows, dim, out);
  }
  void AddInPlace(float* x, const float* y, int64_t values) { reference::AddInPlace(x, y, values); }
  void AddBias(float* x, const float* bias, int64_t rows, int64_t dim) {
    reference::AddBias(x, bias, rows, dim);
  }
  void Scale(float* x, float factor, int64_t values) { reference::Scale(x, factor, values); }
  void Softcap(float* x, float cap, int64_t values) { reference::Softcap(x, cap, values); }
  void Gate(Activation activation, const float* gate, const float* up, int64_t values, float* out) {
    const auto op = activation == Activation::kSilu ? reference::SiluGate : reference::GeluGate;
    op(gate, up, values, out);
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
