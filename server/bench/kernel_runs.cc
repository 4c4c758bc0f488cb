#include "server/bench/kernel_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

#include "absl/functional/function_ref.h"
#include "kernels/attention.h"
#include "kernels/buffer.h"
#include "kernels/layer_ops.h"
#include "kernels/matmul.h"
#include "kernels/matmul_input.h"

namespace hexad {
namespace {

constexpr size_t kCopyBytes = size_t{96} << 20;  // more than caches hold
constexpr int32_t kBlockTokens = 16;

double Now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

KernelTiming Measure(double seconds, absl::FunctionRef<void()> call) {
  call();
  std::vector<double> times;
  double total = 0;
  while (times.size() < 3 || (total < seconds && times.size() < 100000)) {
    const double start = Now();
    call();
    times.push_back(Now() - start);
    total += times.back();
  }
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return {*std::min_element(times.begin(), times.end()), *middle,
          static_cast<int64_t>(times.size())};
}

// Bytes whose upper two bits are clear and that never are 0x3c or more: every half and float made
// of them is finite and small.
std::vector<uint8_t> RandomRows(DType type, int64_t rows, int64_t in) {
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * RowBytes(type, in)));
  uint64_t state = 1;
  for (size_t at = 0; at < bytes.size(); at += sizeof(state)) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t word = (state ^ (state >> 32)) & 0x3b3b3b3b3b3b3b3bull;
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), bytes.size() - at));
  }
  return bytes;
}

std::vector<float> RandomFloats(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 2654435761u) % 2001) * 1e-3f - 1.0f;
  }
  return values;
}

// The weights of a product, kept while neighbouring cases use the same.
class ProductBench {
 public:
  ProductBench(const KernelCase& one, ThreadTeam& team) : one_(one) {
    const KernelShape shape = ProductShape(one.op, *one.model);
    const int64_t parts = one.op == KernelOp::kFfnGated ? 2 : 1;
    out_ = shape.out / parts;
    const std::vector<uint8_t> rows = RandomRows(one.format, out_, shape.in);
    size_t bytes = 0;
    do {
      for (int64_t part = 0; part < parts; ++part) {
        copies_.push_back(
            PackedMatrix::Pack(one.format, rows.data(), out_, shape.in, team, one.activations));
        bytes += copies_.back().bytes();
      }
    } while (bytes < kCopyBytes && copies_.size() < 1024);
  }

  bool Fits(const KernelCase& other) const {
    return other.op == one_.op && other.model == one_.model && other.format == one_.format &&
           other.activations == one_.activations;
  }

  KernelTiming Run(int32_t tokens, double seconds, ThreadTeam& team) {
    const PackedMatrix* const first = copies_.data();
    MatMulInput input;
    input.Reset(tokens, std::span(&first, 1));
    input.PutAll(RandomFloats(tokens * first->in()).data(), team);
    size_t next = 0;
    const auto copy = [&]() -> const PackedMatrix& { return copies_[next++ % copies_.size()]; };
    if (one_.op == KernelOp::kFfnGated) {
      // Whatever multiplies the gated values: only the form that it takes them in matters.
      const DType format = out_ % Info(one_.format).block_values == 0 ? one_.format : DType::kQ8_0;
      const PackedMatrix down = PackedMatrix::Pack(format, RandomRows(format, 16, out_).data(), 16,
                                                   out_, team, one_.activations);
      const PackedMatrix* const after = &down;
      const Gate gate = one_.model->gelu ? Gate::kGelu : Gate::kSilu;
      MatMulInput result;
      result.Reset(tokens, std::span(&after, 1));
      return Measure(seconds, [&] {
        const PackedMatrix& weights = copy();
        GatedMatMul(input, weights, copy(), gate, result, team);
      });
    }
    if (one_.op == KernelOp::kLogits) {
      std::vector<LogitRow> rows(static_cast<size_t>(tokens));
      return Measure(seconds, [&] { MatMulLogits(input, copy(), 0.0f, rows, team); });
    }
    std::vector<float> y(static_cast<size_t>(tokens * out_));
    return Measure(seconds, [&] {
      const MatMulOutput output{&copy(), y.data()};
      MatMul(input, std::span(&output, 1), team);
    });
  }

 private:
  KernelCase one_;
  int64_t out_ = 0;
  std::vector<PackedMatrix> copies_;
};

// A pool with a block table of each sequence.
class KvBench {
 public:
  KvBench(const KernelCase& one, int32_t sequences, int32_t shared, int32_t own) {
    const KernelModel& model = *one.model;
    layout_ = {one.format, model.kv_heads, model.head_dim, kBlockTokens};
    const int32_t shared_blocks = shared / kBlockTokens;
    const int32_t own_blocks = (own + kBlockTokens - 1) / kBlockTokens;
    const int64_t blocks = shared_blocks + int64_t{own_blocks} * sequences;
    const int64_t bytes = blocks * layout_.BlockBytes();
    // Copies, so that short contexts do not stay in the caches.
    copies_ = std::clamp<int64_t>(static_cast<int64_t>(kCopyBytes) / (2 * bytes), 1, 64);
    memory_ = HugeBuffer(static_cast<size_t>(2 * bytes * copies_));
    bytes_ = bytes;
    tables_.resize(static_cast<size_t>(sequences));
    for (int32_t s = 0; s < sequences; ++s) {
      std::vector<uint32_t>& table = tables_[static_cast<size_t>(s)];
      for (int32_t b = 0; b < shared_blocks; ++b) table.push_back(static_cast<uint32_t>(b));
      for (int32_t b = 0; b < own_blocks; ++b) {
        table.push_back(static_cast<uint32_t>(shared_blocks + s * own_blocks + b));
      }
    }
  }

  KvPool Pool(int64_t copy) {
    std::byte* const base = memory_.data() + 2 * bytes_ * (copy % copies_);
    return {layout_, base, base + bytes_};
  }
  std::vector<KvSequence> Sequences(int32_t first_position, int32_t rows) const {
    std::vector<KvSequence> sequences;
    for (const std::vector<uint32_t>& table : tables_) {
      sequences.push_back({table.data(), first_position, rows});
    }
    return sequences;
  }

 private:
  KvBlockShape layout_;
  int64_t bytes_ = 0;
  int64_t copies_ = 1;
  HugeBuffer memory_;
  std::vector<std::vector<uint32_t>> tables_;
};

KernelTiming RunAttention(const KernelCase& one, double seconds, ThreadTeam& team) {
  const KernelModel& model = *one.model;
  const bool prefill = one.op == KernelOp::kAttentionPrefill;
  const bool cascade = one.op == KernelOp::kAttentionCascade;
  const int32_t shared = cascade ? kSharedDepth : 0;
  const int32_t own = prefill ? one.tokens : cascade ? kOwnDepth : kDecodeDepth;
  KvBench kv(one, prefill ? 1 : one.tokens, shared, own);
  const std::vector<KvSequence> sequences =
      prefill ? kv.Sequences(0, one.tokens) : kv.Sequences(shared + own - 1, 1);
  std::vector<float> q = RandomFloats(int64_t{one.tokens} * model.heads * model.head_dim);
  std::vector<float> out(q.size());
  AttentionArgs args;
  args.q = q.data();
  args.out = out.data();
  args.heads = model.heads;
  args.sequences = sequences;
  args.scale = 1.0f / std::sqrt(static_cast<float>(model.head_dim));
  int64_t copy = 0;
  return Measure(seconds, [&] {
    args.pool = kv.Pool(copy++);
    Attention(args, team);
  });
}

KernelTiming RunRopeStore(const KernelCase& one, double seconds, ThreadTeam& team) {
  const KernelModel& model = *one.model;
  KvBench kv(one, 1, 0, one.tokens);
  const std::vector<KvSequence> sequences = kv.Sequences(0, one.tokens);
  const int64_t pairs = model.head_dim / 2;
  const std::vector<float> frequencies = RopeFrequencies(model.head_dim, 10000.0, 1.0, nullptr);
  std::vector<int64_t> positions(static_cast<size_t>(one.tokens));
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<float> table(static_cast<size_t>(one.tokens * model.head_dim));
  RopeTable(positions.data(), one.tokens, frequencies.data(), pairs, 1.0f, table.data(), team);
  std::vector<float> q = RandomFloats(int64_t{one.tokens} * model.heads * model.head_dim);
  std::vector<float> k = RandomFloats(int64_t{one.tokens} * model.kv_heads * model.head_dim);
  std::vector<float> v = k;
  PositionArgs args;
  args.query.values = q.data();
  args.query.heads = model.heads;
  args.key.values = k.data();
  args.key.heads = model.kv_heads;
  args.value = v.data();
  args.rows = one.tokens;
  args.head_dim = model.head_dim;
  args.rope = RopeKind::kHalves;
  args.table = table.data();
  args.pairs = pairs;
  args.pool = kv.Pool(0);
  args.sequences = sequences;
  return Measure(seconds, [&] { PositionAndStore(args, team); });
}

KernelTiming RunRows(const KernelCase& one, double seconds, ThreadTeam& team) {
  const int64_t dim = one.model->hidden;
  // What the input is made for.
  const DType format = DType::kQ8_0;
  const PackedMatrix weights = PackedMatrix::Pack(format, RandomRows(format, 16, dim).data(), 16,
                                                  dim, team, one.activations);
  const PackedMatrix* const product = &weights;
  MatMulInput out;
  out.Reset(one.tokens, std::span(&product, 1));
  std::vector<float> x = RandomFloats(one.tokens * dim);
  if (one.op == KernelOp::kQuantize) {
    return Measure(seconds, [&] { out.PutAll(x.data(), team); });
  }
  std::vector<float> h(x.size(), 0.0f);
  const std::vector<float> norm(static_cast<size_t>(dim), 1.0f);
  AddAndNormArgs args;
  args.x = x.data();
  args.h = h.data();
  args.norm = {norm.data(), 0.0f, 1e-5f};
  args.rows = one.tokens;
  return Measure(seconds, [&] { AddAndNorm(args, out, team); });
}

KernelTiming RunOther(const KernelCase& one, double seconds, ThreadTeam& team) {
  switch (one.op) {
    case KernelOp::kAttentionDecode:
    case KernelOp::kAttentionPrefill:
    case KernelOp::kAttentionCascade:
      return RunAttention(one, seconds, team);
    case KernelOp::kRopeStore:
      return RunRopeStore(one, seconds, team);
    case KernelOp::kTeam:
      return Measure(seconds, [&] { team.ParallelFor(64, 1, [](int64_t, int64_t, int) {}); });
    default:
      return RunRows(one, seconds, team);
  }
}

}  // namespace

void RunKernels(const std::vector<KernelCase>& cases, double seconds, ThreadTeam& team,
                const std::function<void(const KernelCase&, const KernelTiming&)>& report) {
  std::unique_ptr<ProductBench> product;
  for (const KernelCase& one : cases) {
    if (!IsProduct(one.op)) {
      report(one, RunOther(one, seconds, team));
      continue;
    }
    if (product == nullptr || !product->Fits(one)) {
      product.reset();
      product = std::make_unique<ProductBench>(one, team);
    }
    report(one, product->Run(one.tokens, seconds, team));
  }
}

}  // namespace hexad
