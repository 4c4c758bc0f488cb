// Fused passes against the ops they stand for, bit for bit, on random shapes.

#include "kernels/layer_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

constexpr int kShapes = 200;

PackedMatrix RandomMatrix(RandomData& random, DType type, int64_t out, int64_t in,
                          Activations activations, ThreadTeam& team) {
  return PackedMatrix::Pack(type, random.Rows(type, out, in).data(), out, in, team, activations);
}

// A type whose rows may have any multiple of 32 values, or for F32 any number.
DType SmallType(RandomData& random) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kQ4_0, DType::kQ4_1, DType::kQ8_0};
  return kTypes[random.Integer(0, 4)];
}

Activations AnyActivations(RandomData& random) {
  return random.Integer(0, 1) == 0 ? Activations::kF32 : Activations::kInt8;
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(float)), 0) << i << ": " << a[i] << ", " << b[i];
  }
}

std::vector<float> Product(const std::vector<float>& x, int64_t rows, const PackedMatrix& weights,
                           ThreadTeam& team) {
  std::vector<float> y(static_cast<size_t>(rows * weights.out()));
  MatMul(x.data(), rows, weights, y.data(), team);
  return y;
}

std::vector<float> Product(const MatMulInput& x, const PackedMatrix& weights, ThreadTeam& team) {
  std::vector<float> y(static_cast<size_t>(x.rows() * weights.out()));
  const MatMulOutput outputs[] = {{&weights, y.data()}};
  MatMul(x, outputs, team);
  return y;
}

TEST(AddAndNorm, IsRmsNormAndAddInPlace) {
  RandomData random(1);
  ThreadTeam team(2);
  MatMulInput input;
  for (int i = 0; i < kShapes; ++i) {
    const int64_t rows = random.Integer(1, 40), dim = 32 * random.Integer(1, 20);
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(dim));
    const PackedMatrix next =
        RandomMatrix(random, SmallType(random), 20, dim, AnyActivations(random), team);
    std::vector<float> x = random.Floats(rows * dim), h = random.Floats(rows * dim);
    const std::vector<float> weight = random.Floats(dim), post = random.Floats(dim);
    AddAndNormArgs args;
    args.norm = {weight.data(), i % 2 == 0 ? 1.0f : 0.0f, 1e-5f};
    args.rows = rows;
    if (i % 3 == 0) args.post_norm = {post.data(), 0.0f, 1e-6f};

    std::vector<float> expected_x = x, expected_h = h, normed(x.size());
    if (i % 3 == 0) {
      RmsNorm(h.data(), post.data(), 0.0f, 1e-6f, rows, dim, expected_h.data(), team);
    }
    if (i % 5 != 0) AddInPlace(expected_x.data(), expected_h.data(), rows * dim, team);
    RmsNorm(expected_x.data(), weight.data(), args.norm.offset, 1e-5f, rows, dim, normed.data(),
            team);

    args.x = x.data();
    args.h = i % 5 != 0 ? h.data() : nullptr;
    const PackedMatrix* const weights[] = {&next};
    input.Reset(rows, weights);
    AddAndNorm(args, input, team);
    ExpectSameBits(x, expected_x);
    ExpectSameBits(Product(input, next, team), Product(normed, rows, next, team));
  }
}

TEST(GatedMatMul, IsMatMulAndGate) {
  RandomData random(2);
  ThreadTeam team(2);
  MatMulInput input, gated;
  for (int i = 0; i < kShapes; ++i) {
    const int64_t rows = random.Integer(1, 20), in = 32 * random.Integer(1, 6);
    const DType next_type = SmallType(random);
    const bool any_width = next_type == DType::kF32 || next_type == DType::kF16;
    const int64_t ffn = any_width ? random.Integer(1, 300) : 32 * random.Integer(1, 12);
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(in) + " x " + std::to_string(ffn));
    const DType type = SmallType(random);
    const Activations activations = AnyActivations(random);
    const PackedMatrix gate = RandomMatrix(random, type, ffn, in, activations, team);
    const PackedMatrix up = RandomMatrix(random, type, ffn, in, activations, team);
    const PackedMatrix next = RandomMatrix(random, next_type, 24, ffn, activations, team);
    const std::vector<float> x = random.Floats(rows * in);
    const Gate kind = i % 2 == 0 ? Gate::kSilu : Gate::kGelu;

    std::vector<float> expected = Product(x, rows, gate, team);
    const std::vector<float> ups = Product(x, rows, up, team);
    (kind == Gate::kSilu ? SiluGate : GeluGate)(expected.data(), ups.data(), rows * ffn,
                                                expected.data(), team);

    const PackedMatrix* const first[] = {&gate, &up};
    const PackedMatrix* const second[] = {&next};
    input.Reset(rows, first);
    input.PutAll(x.data(), team);
    gated.Reset(rows, second);
    GatedMatMul(input, gate, up, kind, gated, team);
    ExpectSameBits(Product(gated, next, team), Product(expected, rows, next, team));
  }
}

int32_t LowestGreatest(const float* logits, int64_t count) {
  float best = -INFINITY;
  int32_t id = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(logits[i] > best)) continue;
    best = logits[i];
    id = static_cast<int32_t>(i);
  }
  return id;
}

TEST(MatMulLogits, FindsTheLowestOfTheGreatestAndWritesWhatIsAskedFor) {
  RandomData random(3);
  ThreadTeam team(3);
  MatMulInput input;
  for (int i = 0; i < kShapes; ++i) {
    const int64_t rows = random.Integer(1, 9), in = 32 * random.Integer(1, 4);
    const int64_t vocabulary = random.Integer(1, 900);
    const DType type = SmallType(random);
    // Rows of the matrix come again, so that the greatest logit is there several times.
    const int64_t distinct = std::max<int64_t>(1, vocabulary / random.Integer(1, 4));
    const std::vector<uint8_t> some = random.Rows(type, distinct, in);
    std::vector<uint8_t> all;
    const size_t row_bytes = some.size() / static_cast<size_t>(distinct);
    for (int64_t v = 0; v < vocabulary; ++v) {
      const auto from = some.begin() + static_cast<ptrdiff_t>(row_bytes) * (v % distinct);
      all.insert(all.end(), from, from + static_cast<ptrdiff_t>(row_bytes));
    }
    const PackedMatrix head =
        PackedMatrix::Pack(type, all.data(), vocabulary, in, team, AnyActivations(random));
    std::vector<float> x = random.Floats(rows * in);
    if (i % 4 == 0) x[0] = NAN;  // a row without a possible token
    if (i % 7 == 0) std::fill(x.begin(), x.begin() + in, 0.0f);
    const float cap = i % 3 == 0 ? 2.0f : 0.0f;
    std::vector<float> expected = Product(x, rows, head, team);
    if (cap > 0) Softcap(expected.data(), cap, rows * vocabulary, team);

    std::vector<float> logits(expected.size(), -1.0f);
    std::vector<LogitRow> wanted(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) {
      if (r % 2 == i % 2) wanted[r].logits = logits.data() + r * vocabulary;
    }
    const PackedMatrix* const weights[] = {&head};
    input.Reset(rows, weights);
    input.PutAll(x.data(), team);
    MatMulLogits(input, head, cap, wanted, team);
    for (int64_t r = 0; r < rows; ++r) {
      const float* const own = expected.data() + r * vocabulary;
      EXPECT_EQ(wanted[r].best, LowestGreatest(own, vocabulary)) << "row " << r;
      if (wanted[r].logits == nullptr) continue;
      EXPECT_EQ(std::memcmp(own, wanted[r].logits, sizeof(float) * vocabulary), 0) << "row " << r;
    }
  }
}

struct Pools {
  explicit Pools(const KvBlockShape& shape, int64_t blocks)
      : k(static_cast<size_t>(shape.BlockBytes() * blocks)), v(k.size()) {
    pool = {shape, k.data(), v.data()};
  }
  AlignedVector<std::byte> k, v;
  KvPool pool;
};

TEST(PositionAndStore, IsBiasNormRopeAndStoreKv) {
  RandomData random(4);
  ThreadTeam team(2);
  for (int i = 0; i < kShapes; ++i) {
    KvBlockShape shape;
    shape.type = i % 2 == 0 ? DType::kF16 : DType::kF32;
    shape.kv_heads = static_cast<int32_t>(random.Integer(1, 3));
    shape.head_dim = static_cast<int32_t>(8 * random.Integer(1, 10));
    shape.block_tokens = 16;
    const int32_t heads = shape.kv_heads * static_cast<int32_t>(random.Integer(1, 4));
    std::vector<std::vector<uint32_t>> tables;
    std::vector<KvSequence> sequences;
    std::vector<int64_t> positions;
    uint32_t block = 0;
    for (int64_t s = random.Integer(1, 5); s > 0; --s) {
      const int64_t first = random.Integer(0, 40), count = random.Integer(1, 60);
      tables.emplace_back();
      for (int64_t b = 0; b <= (first + count) / 16; ++b) tables.back().push_back(block++);
      for (int64_t p = first; p < first + count; ++p) positions.push_back(p);
      sequences.push_back({nullptr, first, static_cast<int32_t>(count)});
    }
    for (size_t s = 0; s < sequences.size(); ++s) sequences[s].blocks = tables[s].data();
    const auto rows = static_cast<int64_t>(positions.size());
    const int64_t pairs = random.Integer(1, shape.head_dim / 2), dim = shape.head_dim;
    const int64_t q_size = heads * dim, kv_size = shape.kv_heads * dim;
    const std::vector<float> frequencies = RopeFrequencies(2 * pairs, 10000, 1, nullptr);
    std::vector<float> table(static_cast<size_t>(rows * 2 * pairs));
    RopeTable(positions.data(), rows, frequencies.data(), pairs, 1, table.data(), team);
    std::vector<float> q = random.Floats(rows * q_size), k = random.Floats(rows * kv_size),
                       v = random.Floats(rows * kv_size);
    const std::vector<float> q_bias = random.Floats(q_size), kv_bias = random.Floats(kv_size),
                             norm = random.Floats(dim);
    Pools expected(shape, block), actual(shape, block);

    PositionArgs args;
    args.query = {q.data(), heads, i % 3 == 0 ? q_bias.data() : nullptr, {}};
    args.key = {k.data(), shape.kv_heads, i % 3 == 0 ? kv_bias.data() : nullptr, {}};
    if (i % 4 == 0) args.query.norm = args.key.norm = {norm.data(), 1.0f, 1e-6f};
    args.value = v.data();
    args.value_bias = args.key.bias;
    args.rows = rows;
    args.head_dim = shape.head_dim;
    args.rope = i % 5 < 2 ? RopeKind::kInterleaved : RopeKind::kHalves;
    args.table = table.data();
    args.pairs = pairs;
    args.pool = actual.pool;
    args.sequences = sequences;

    std::vector<float> expected_q = q, expected_k = k, expected_v = v;
    const auto plain = [&](std::vector<float>& values, int32_t count, const float* bias) {
      if (bias != nullptr) AddBias(values.data(), bias, rows, count * dim, team);
      if (i % 4 == 0) {
        RmsNorm(values.data(), norm.data(), 1.0f, 1e-6f, rows * count, dim, values.data(), team);
      }
      Rope(args.rope, table.data(), pairs, rows, count, dim, values.data(), team);
    };
    plain(expected_q, heads, args.query.bias);
    plain(expected_k, shape.kv_heads, args.key.bias);
    if (args.value_bias != nullptr) {
      AddBias(expected_v.data(), args.value_bias, rows, kv_size, team);
    }
    StoreKv(expected.pool, sequences, expected_k.data(), expected_v.data(), team);

    PositionAndStore(args, team);
    ExpectSameBits(q, expected_q);
    ExpectSameBits(k, expected_k);
    EXPECT_EQ(std::memcmp(actual.k.data(), expected.k.data(), expected.k.size()), 0);
    EXPECT_EQ(std::memcmp(actual.v.data(), expected.v.data(), expected.v.size()), 0);
  }
}

}  // namespace
}  // namespace hexad
