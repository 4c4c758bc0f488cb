#include "engine/models/cpu_transformer.h"

#include <initializer_list>
#include <utility>

#include "engine/models/transformer.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace hexad {
namespace {

class CpuOps {
 public:
  using Matrix = PackedMatrix;
  struct Rope {
    int64_t pairs = 0;
    std::vector<float> table;
  };

  // activations: of the matrices that Load packs.
  explicit CpuOps(ThreadTeam& team, Activations activations = Activations::kF32)
      : team_(&team), activations_(activations) {}

  Matrix Load(const GgufTensor& tensor) {
    return PackedMatrix::Pack(tensor.type, tensor.data.data(), tensor.dims[1], tensor.dims[0],
                              *team_, activations_);
  }
  void MatMul(const float* x, int64_t rows, std::initializer_list<MatMulOutput> outputs) {
    hexad::MatMul(x, rows, std::span<const MatMulOutput>(outputs.begin(), outputs.size()), *team_);
  }
  void PrepareRope(const std::vector<int64_t>& positions, const std::vector<float>& frequencies,
                   Rope& rope) {
    rope.pairs = static_cast<int64_t>(frequencies.size());
    rope.table.resize(positions.size() * 2 * frequencies.size());
    if (positions.empty()) return;
    RopeTable(positions.data(), static_cast<int64_t>(positions.size()), frequencies.data(),
              rope.pairs, 1.0f, rope.table.data(), *team_);
  }
  void ApplyRope(RopeKind kind, const Rope& rope, int64_t rows, int64_t heads, int64_t head_dim,
                 float* x) {
    hexad::Rope(kind, rope.table.data(), rope.pairs, rows, heads, head_dim, x, *team_);
  }
  void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
               const float* v) {
    hexad::StoreKv(pool, sequences, k, v, *team_);
  }
  void Attention(const AttentionArgs& args) { hexad::Attention(args, *team_); }
  void RmsNorm(const float* x, const float* weight, float offset, float epsilon, int64_t rows,
               int64_t dim, float* out) {
    hexad::RmsNorm(x, weight, offset, epsilon, rows, dim, out, *team_);
  }
  void AddInPlace(float* x, const float* y, int64_t values) {
    hexad::AddInPlace(x, y, values, *team_);
  }
  void AddBias(float* x, const float* bias, int64_t rows, int64_t dim) {
    hexad::AddBias(x, bias, rows, dim, *team_);
  }
  void Scale(float* x, float factor, int64_t values) { hexad::Scale(x, factor, values, *team_); }
  void Softcap(float* x, float cap, int64_t values) { hexad::Softcap(x, cap, values, *team_); }
  void Gate(Activation activation, const float* gate, const float* up, int64_t values, float* out) {
    const auto op = activation == Activation::kSilu ? SiluGate : GeluGate;
    op(gate, up, values, out, *team_);
  }

 private:
  ThreadTeam* team_;
  Activations activations_;
};

}  // namespace

class CpuWeights final {
 public:
  TransformerWeights<PackedMatrix> weights;
  Activations activations = Activations::kF32;
};

std::shared_ptr<const CpuWeights> PackCpuWeights(const ModelFile& model, ThreadTeam& team,
                                                 Activations activations) {
  CpuOps ops(team, activations);
  auto packed = std::make_shared<CpuWeights>();
  packed->activations = activations;
  packed->weights = LoadWeights(model, ops);
  return packed;
}

Activations ActivationsOf(const CpuWeights& weights) { return weights.activations; }

absl::StatusOr<std::unique_ptr<Model>> MakeCpuTransformer(std::shared_ptr<const ModelFile> file,
                                                          std::shared_ptr<const CpuWeights> weights,
                                                          const KvStorageOptions& kv,
                                                          ThreadTeam& team) {
  absl::StatusOr<KvStorage> storage = KvStorage::Make(file->spec, kv);
  if (!storage.ok()) return storage.status();
  std::shared_ptr<const TransformerWeights<PackedMatrix>> view(weights, &weights->weights);
  return std::unique_ptr<Model>(std::make_unique<Transformer<CpuOps>>(
      std::move(file), std::move(view), *std::move(storage), CpuOps(team)));
}

}  // namespace hexad
