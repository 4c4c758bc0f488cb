#include "engine/models/cpu_transformer.h"

#include <initializer_list>
#include <utility>

#include "engine/models/transformer.h"
#include "kernels/attention_plan.h"
#include "kernels/elementwise.h"
#include "kernels/layer_ops.h"
#include "kernels/matmul.h"

namespace hexad {
namespace {

class CpuOps {
 public:
  using Matrix = PackedMatrix;
  using AttentionPlan = hexad::AttentionPlan;
  using Input = MatMulInput;
  struct Rope {
    int64_t pairs = 0;
    std::vector<float> table;
  };

  // file, activations: of the matrices that Load packs.
  explicit CpuOps(ThreadTeam& team, const GgufFile* file = nullptr,
                  Activations activations = Activations::kF32)
      : team_(&team), file_(file), activations_(activations) {}

  // The file's pages go as the packed ones come, so that at no time all weights are there twice.
  Matrix Load(const GgufTensor& tensor) {
    Matrix matrix = PackedMatrix::Pack(tensor.type, tensor.data.data(), tensor.dims[1],
                                       tensor.dims[0], *team_, activations_);
    if (file_ != nullptr) file_->ReleasePages(tensor.data);
    return matrix;
  }
  // tied: the head that is the embedding as well, or nullptr.
  void Embed(const GgufTensor& embedding, const Matrix* tied, std::span<const TokenId> tokens,
             float* x) {
    if (tied == nullptr) return EmbedFromFile(embedding, tokens, x);
    team_->ParallelFor(
        static_cast<int64_t>(tokens.size()), 4, [&](int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i) {
            tied->Row(static_cast<int64_t>(tokens[static_cast<size_t>(i)]), x + i * tied->in());
          }
        });
  }
  void AddAndNorm(const AddAndNormArgs& args, std::initializer_list<const Matrix*> matrices,
                  Input& out) {
    out.Reset(args.rows, {matrices.begin(), matrices.size()});
    hexad::AddAndNorm(args, out, *team_);
  }
  void Put(const float* x, int64_t rows, const Matrix& matrix, Input& out) {
    const Matrix* const matrices[] = {&matrix};
    out.Reset(rows, matrices);
    out.PutAll(x, *team_);
  }
  void MatMul(const Input& x, std::initializer_list<MatMulOutput> outputs) {
    hexad::MatMul(x, {outputs.begin(), outputs.size()}, *team_);
  }
  // act(x W_gate) * (x W_up) as the input of `next`.
  void GatedMatMul(const Input& x, const Matrix& gate, const Matrix& up, Activation activation,
                   const Matrix& next, Input& out) {
    const Matrix* const matrices[] = {&next};
    out.Reset(x.rows(), matrices);
    const Gate kind = activation == Activation::kSilu ? Gate::kSilu : Gate::kGelu;
    hexad::GatedMatMul(x, gate, up, kind, out, *team_);
  }
  void Logits(const Input& x, const Matrix& head, float cap, std::span<LogitRow> rows) {
    MatMulLogits(x, head, cap, rows, *team_);
  }
  void PrepareRope(const std::vector<int64_t>& positions, const std::vector<float>& frequencies,
                   Rope& rope) {
    rope.pairs = static_cast<int64_t>(frequencies.size());
    rope.table.resize(positions.size() * 2 * frequencies.size());
    if (positions.empty()) return;
    RopeTable(positions.data(), static_cast<int64_t>(positions.size()), frequencies.data(),
              rope.pairs, 1.0f, rope.table.data(), *team_);
  }
  void PositionAndStore(const Rope& rope, PositionArgs& args) {
    args.table = rope.table.data();
    args.pairs = rope.pairs;
    hexad::PositionAndStore(args, *team_);
  }
  void PlanAttention(std::span<const KvSequence> sequences, const KvBlockShape& layout,
                     int32_t heads, int32_t window, AttentionPlan& plan) {
    hexad::PlanAttention({sequences, layout, heads, window, team_->threads()}, plan);
  }
  void Attention(AttentionArgs args, const AttentionPlan& plan) {
    args.plan = &plan;
    hexad::Attention(args, *team_);
  }
  void Scale(float* x, float factor, int64_t values) { hexad::Scale(x, factor, values, *team_); }

 private:
  ThreadTeam* team_;
  const GgufFile* file_;
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
  CpuOps ops(team, model.gguf.get(), activations);
  auto packed = std::make_shared<CpuWeights>();
  packed->activations = activations;
  packed->weights = LoadWeights(model, ops);
  model.gguf->ReleasePages();
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
