#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

constexpr int64_t kTokenCounts[] = {1, 2, 3, 5, 6, 7, 13, 97};

// Sum of |w x| of each output: what rounding errors are proportional to.
std::vector<float> Magnitudes(const std::vector<float>& x, int64_t tokens, DType type,
                              const std::vector<uint8_t>& rows, int64_t out, int64_t in) {
  std::vector<float> magnitudes(static_cast<size_t>(tokens * out));
  std::vector<float> weights(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o) {
    DequantizeRow(type, rows.data() + o * RowBytes(type, in), in, weights.data());
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < in; ++k) sum += std::fabs(double{x[t * in + k]} * weights[k]);
      magnitudes[t * out + o] = static_cast<float>(sum);
    }
  }
  return magnitudes;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                const std::vector<float>& magnitudes) {
  for (size_t i = 0; i < actual.size(); ++i) {
    // Formats with a bias or min multiply larger integers than their values are: a few units more.
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * magnitudes[i] + 1e-6) << "output " << i;
  }
}

class MatMulOfType : public testing::TestWithParam<DType> {};

TEST_P(MatMulOfType, EqualsReferenceOnRandomShapes) {
  const DType type = GetParam();
  RandomData random(17 + static_cast<uint64_t>(type));
  ThreadTeam team(2);
  const int64_t block = Info(type).block_values;
  for (const int64_t tokens : kTokenCounts) {
    const int64_t out = random.Integer(1, 70);
    const int64_t in = block == 1 ? random.Integer(1, 700) : block * random.Integer(1, 768 / block);
    const std::vector<uint8_t> rows = random.Rows(type, out, in);
    const std::vector<float> x = random.Floats(tokens * in);
    const PackedMatrix packed = PackedMatrix::Pack(type, rows.data(), out, in, team);
    ASSERT_EQ(packed.out(), out);
    ASSERT_EQ(packed.in(), in);
    std::vector<float> actual(static_cast<size_t>(tokens * out), NAN);
    std::vector<float> expected(actual.size());
    MatMul(x.data(), tokens, packed, actual.data(), team);
    reference::MatMul(x.data(), tokens, type, rows.data(), out, in, expected.data());
    SCOPED_TRACE(testing::Message()
                 << Info(type).name << " tokens " << tokens << " out " << out << " in " << in);
    ExpectNear(actual, expected, Magnitudes(x, tokens, type, rows, out, in));
  }
}

// Packed floats times x by the set that this machine would not choose.
std::vector<float> PortableFloats(const PackedMatrix& packed, const std::vector<float>& x,
                                  int64_t tokens) {
  const int64_t chunk = cpu::kFloatChain, chunks = (packed.in() + chunk - 1) / chunk;
  std::vector<float> chunked(static_cast<size_t>(chunks * tokens * chunk), NAN);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t k = 0; k < packed.in(); ++k) {
      chunked[(k / chunk * tokens + t) * chunk + k % chunk] = x[t * packed.in() + k];
    }
  }
  std::vector<float> y(static_cast<size_t>(tokens * packed.out()));
  cpu::FloatPanelsTask task{};
  task.kind = cpu::FormatOf(packed.type()).kind;
  task.panel_bytes = cpu::LayoutOf(cpu::FormatOf(packed.type()), packed.in()).bytes;
  task.panels = static_cast<int64_t>(packed.bytes()) / task.panel_bytes;
  task.weights = reinterpret_cast<const uint8_t*>(packed.data());
  task.in = packed.in();
  task.tokens = tokens;
  task.x = chunked.data();
  task.y = y.data();
  task.y_stride = task.rows = packed.out();
  cpu::kPortableKernels.float_panels(task);
  return y;
}

// The set that this machine would not choose: the same packed weights, called directly.
TEST_P(MatMulOfType, PortableKernelsEqualReference) {
  const DType type = GetParam();
  RandomData random(43 + static_cast<uint64_t>(type));
  const int64_t in = Info(type).block_values == 1 ? 77 : 512, tokens = 3, out = 13;
  const std::vector<uint8_t> rows = random.Rows(type, out, in);
  const std::vector<float> x = random.Floats(tokens * in);
  ThreadTeam team(1);
  const PackedMatrix packed = PackedMatrix::Pack(type, rows.data(), out, in, team);
  std::vector<float> expected(static_cast<size_t>(tokens * out));
  reference::MatMul(x.data(), tokens, type, rows.data(), out, in, expected.data());
  const std::vector<float> magnitudes = Magnitudes(x, tokens, type, rows, out, in);
  if (Info(type).block_values == 1) {
    ExpectNear(PortableFloats(packed, x, tokens), expected, magnitudes);
    return;
  }
  cpu::PanelTask task{};
  task.format = cpu::FormatOf(type);
  const cpu::PanelLayout layout = cpu::LayoutOf(task.format, in);
  std::vector<float> shifted(x.size()), sums(x.size()), actual(static_cast<size_t>(tokens * out));
  cpu::kPortableKernels.prepare(
      {x.data(), tokens, in, task.format.group, shifted.data(), sums.data()});
  task.quants = reinterpret_cast<const uint8_t*>(packed.data());
  task.scales = task.quants + layout.scales;
  task.supers = task.quants + layout.supers;
  task.in = in;
  task.tokens = tokens;
  task.x = task.format.kind == cpu::WeightKind::kU4 ? shifted.data() : x.data();
  task.sums = sums.data();
  task.y = actual.data();
  task.y_stride = out;
  task.rows = static_cast<int32_t>(out);
  cpu::kPortableKernels.panel(task);
  ExpectNear(actual, expected, magnitudes);
}

TEST_P(MatMulOfType, RowsComeBackWithTheBitsOfTheFile) {
  const DType type = GetParam();
  RandomData random(3 + static_cast<uint64_t>(type));
  ThreadTeam team(1);
  const int64_t in = Info(type).block_values == 1 ? 77 : 768, out = 19;
  const std::vector<uint8_t> rows = random.Rows(type, out, in);
  for (const Activations activations : {Activations::kF32, Activations::kInt8}) {
    const PackedMatrix packed = PackedMatrix::Pack(type, rows.data(), out, in, team, activations);
    std::vector<float> actual(static_cast<size_t>(in)), expected(actual.size());
    for (int64_t row = 0; row < out; ++row) {
      packed.Row(row, actual.data());
      DequantizeRow(type, rows.data() + row * RowBytes(type, in), in, expected.data());
      ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0)
          << Info(type).name << " row " << row;
    }
  }
}

// What the whole engine's reproducibility stands on.
TEST_P(MatMulOfType, BitsOfARowDependOnThatRowAlone) {
  const DType type = GetParam();
  RandomData random(99 + static_cast<uint64_t>(type));
  ThreadTeam one(1), two(2), three(3);
  ThreadTeam* const teams[] = {&one, &two, &three};
  const int64_t most = 40, out = 37;
  const int64_t in = Info(type).block_values == 1 ? 299 : Info(type).block_values == 32 ? 352 : 768;
  const std::vector<uint8_t> rows = random.Rows(type, out, in);
  std::vector<float> x = random.Floats(most * in);
  std::fill_n(x.begin(), in, 1e-33f);  // a row whose products underflow when shifted
  const PackedMatrix packed = PackedMatrix::Pack(type, rows.data(), out, in, two);
  std::vector<float> alone(static_cast<size_t>(most * out));
  for (int64_t t = 0; t < most; ++t) {
    MatMul(x.data() + t * in, 1, packed, alone.data() + t * out, one);
  }
  for (int64_t tokens = 1; tokens <= most; ++tokens) {
    ThreadTeam& team = *teams[tokens % 3];
    const int64_t first = random.Integer(0, most - tokens);
    std::vector<float> together(static_cast<size_t>(tokens * out));
    MatMul(x.data() + first * in, tokens, packed, together.data(), team);
    ASSERT_EQ(
        std::memcmp(together.data(), alone.data() + first * out, together.size() * sizeof(float)),
        0)
        << Info(type).name << ", " << tokens << " tokens";
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatMulOfType, testing::ValuesIn(kAllTypes),
                         [](const auto& info) { return std::string(Info(info.param).name); });

class MatMulOfFloats : public testing::TestWithParam<DType> {};

// Blocks of tokens, groups of panels and chunks of k, all with their edges.
TEST_P(MatMulOfFloats, EqualsReferenceOnManyRandomShapes) {
  const DType type = GetParam();
  RandomData random(7 + static_cast<uint64_t>(type));
  ThreadTeam team(2);
  for (int i = 0; i < 67; ++i) {
    const int64_t tokens = i % 8 == 0 ? random.Integer(120, 140) : random.Integer(1, 20);
    const int64_t out = random.Integer(1, 150);
    const int64_t in = i % 4 == 0 ? random.Integer(1, 3) * 256 : random.Integer(1, 700);
    const std::vector<uint8_t> rows = random.Rows(type, out, in);
    const std::vector<float> x = random.Floats(tokens * in);
    const PackedMatrix packed = PackedMatrix::Pack(type, rows.data(), out, in, team);
    std::vector<float> actual(static_cast<size_t>(tokens * out), NAN);
    std::vector<float> expected(actual.size());
    MatMul(x.data(), tokens, packed, actual.data(), team);
    reference::MatMul(x.data(), tokens, type, rows.data(), out, in, expected.data());
    SCOPED_TRACE(testing::Message() << "tokens " << tokens << " out " << out << " in " << in);
    ExpectNear(actual, expected, Magnitudes(x, tokens, type, rows, out, in));
  }
}

TEST_P(MatMulOfFloats, ManyTokensHaveTheBitsOfOne) {
  const DType type = GetParam();
  RandomData random(31 + static_cast<uint64_t>(type));
  ThreadTeam team(2);
  const int64_t tokens = 261, out = 150, in = 519;
  const std::vector<uint8_t> rows = random.Rows(type, out, in);
  const std::vector<float> x = random.Floats(tokens * in);
  const PackedMatrix packed = PackedMatrix::Pack(type, rows.data(), out, in, team);
  std::vector<float> together(static_cast<size_t>(tokens * out)), alone(together.size());
  MatMul(x.data(), tokens, packed, together.data(), team);
  for (int64_t t = 0; t < tokens; ++t) {
    MatMul(x.data() + t * in, 1, packed, alone.data() + t * out, team);
  }
  EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, MatMulOfFloats,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Info(info.param).name); });

TEST(MatMul, SeveralOutputsEqualSeparateCalls) {
  RandomData random(5);
  ThreadTeam team(3);
  const int64_t in = 512;
  const DType types[] = {DType::kQ4_K, DType::kQ6_K, DType::kF16, DType::kQ4_0};
  const int64_t outs[] = {64, 17, 1, 50};
  for (const int64_t tokens : {int64_t{1}, int64_t{9}}) {
    const std::vector<float> x = random.Floats(tokens * in);
    std::vector<PackedMatrix> matrices;
    std::vector<std::vector<float>> together, separate;
    for (int i = 0; i < 4; ++i) {
      const std::vector<uint8_t> rows = random.Rows(types[i], outs[i], in);
      matrices.push_back(PackedMatrix::Pack(types[i], rows.data(), outs[i], in, team));
      together.emplace_back(static_cast<size_t>(tokens * outs[i]));
      separate.push_back(together.back());
    }
    std::vector<MatMulOutput> outputs;
    for (int i = 0; i < 4; ++i) {
      outputs.push_back({&matrices[i], together[i].data()});
      MatMul(x.data(), tokens, matrices[i], separate[i].data(), team);
    }
    MatMul(x.data(), tokens, outputs, team);
    EXPECT_EQ(together, separate);
  }
}

TEST(PackedMatrix, TakesAboutTheSizeInTheFile) {
  ThreadTeam team(1);
  RandomData random(6);
  const struct {
    DType type;
    double most;
  } kLimits[] = {{DType::kF16, 1.0},  {DType::kQ8_0, 1.0},  {DType::kQ4_0, 1.0},
                 {DType::kQ4_1, 1.0}, {DType::kQ4_K, 1.03}, {DType::kQ6_K, 1.31}};
  for (const auto& limit : kLimits) {
    const std::vector<uint8_t> rows = random.Rows(limit.type, 32, 1024);
    const PackedMatrix packed = PackedMatrix::Pack(limit.type, rows.data(), 32, 1024, team);
    EXPECT_LE(static_cast<double>(packed.bytes()), static_cast<double>(rows.size()) * limit.most)
        << Info(limit.type).name;
  }
}

TEST(KernelSet, HasAName) { EXPECT_FALSE(KernelSetName().empty()); }

}  // namespace
}  // namespace hexad
