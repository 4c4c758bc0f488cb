// Products with int8 activations.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"
#include "kernels/matmul.h"
#include "kernels/quant_block.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

constexpr int64_t kBlock = 32;

std::vector<DType> QuantisedTypes() {
  std::vector<DType> types;
  for (const DType type : kAllTypes) {
    if (QuantGroup(type) > 0) types.push_back(type);
  }
  return types;
}

float LargestMagnitude(const float* block) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(block[i]));
  return largest;
}

// What the kernels are to make of x, as floats.
std::vector<float> Quantised(const std::vector<float>& x) {
  std::vector<float> result(x.size(), 0.0f);
  for (size_t b = 0; b < x.size(); b += kBlock) {
    const float largest = LargestMagnitude(x.data() + b);
    if (largest < 0x1p-100f) continue;
    for (int i = 0; i < kBlock; ++i) {
      result[b + i] = std::nearbyint(x[b + i] * (127.0f / largest)) * (largest / 127.0f);
    }
  }
  return result;
}

struct Case {
  DType type;
  int64_t tokens, out, in;
  std::vector<uint8_t> rows;
  std::vector<float> x;
};

// Sums over k of one output: of |w x|, counting |scale q| and |min| apart, and the bound of
// matmul.h on the error of quantising x.
struct Sums {
  double magnitude = 0;
  double bound = 0;
};

// [tokens, out]
std::vector<Sums> SumsOf(const Case& c) {
  std::vector<Sums> sums(static_cast<size_t>(c.tokens * c.out));
  std::vector<float> weights(static_cast<size_t>(c.in)), parts(weights.size());
  const DTypeInfo& info = Info(c.type);
  for (int64_t o = 0; o < c.out; ++o) {
    const uint8_t* row = c.rows.data() + o * RowBytes(c.type, c.in);
    DequantizeRow(c.type, row, c.in, weights.data());
    for (int64_t k = 0; k < c.in; k += info.block_values, row += info.block_bytes) {
      QuantBlock block;
      UnpackQuantBlock(c.type, row, block);
      for (int i = 0; i < info.block_values; ++i) {
        const int g = i / QuantGroup(c.type);
        parts[k + i] =
            std::fabs(block.scale[g] * static_cast<float>(block.q[i])) + std::fabs(block.min[g]);
      }
    }
    for (int64_t t = 0; t < c.tokens; ++t) {
      Sums& sum = sums[t * c.out + o];
      for (int64_t k = 0; k < c.in; ++k) {
        const float* block = c.x.data() + t * c.in + k / kBlock * kBlock;
        sum.magnitude += std::fabs(double{parts[k]} * block[k % kBlock]);
        sum.bound += std::fabs(double{weights[k]}) * LargestMagnitude(block) / 254;
      }
    }
  }
  return sums;
}

std::vector<float> Reference(const Case& c, const std::vector<float>& x) {
  std::vector<float> y(static_cast<size_t>(c.tokens * c.out));
  reference::MatMul(x.data(), c.tokens, c.type, c.rows.data(), c.out, c.in, y.data());
  return y;
}

void ExpectWithinBounds(const Case& c, const std::vector<float>& actual) {
  const std::vector<float> exact = Reference(c, c.x), quantised = Reference(c, Quantised(c.x));
  const std::vector<Sums> sums = SumsOf(c);
  for (size_t i = 0; i < actual.size(); ++i) {
    const double rounding = 1e-5 * sums[i].magnitude + 1e-6;
    ASSERT_NEAR(actual[i], quantised[i], rounding) << "output " << i;
    ASSERT_NEAR(actual[i], exact[i], sums[i].bound * (1 + 1e-4) + rounding) << "output " << i;
  }
}

// Rows of weights whose quants are the format's extremes, where 16-bit sums come nearest to their
// limits: every quant byte all ones or all zeros, scales untouched.
void MakeExtreme(Case& c, RandomData& random) {
  const DTypeInfo& info = Info(c.type);
  for (size_t at = 0; at < c.rows.size(); at += info.block_bytes) {
    uint8_t* block = c.rows.data() + at;
    const uint8_t byte = random.Integer(0, 1) == 0 ? 0xff : 0x00;
    switch (c.type) {
      case DType::kQ8_0:
        std::memset(block + 2, random.Integer(0, 1) == 0 ? 0x80 : 0x7f, 32);
        break;
      case DType::kQ4_0:
      case DType::kQ5_0:
        std::memset(block + 2, byte, info.block_bytes - 2);
        break;
      case DType::kQ4_1:
      case DType::kQ5_1:
        std::memset(block + 4, byte, info.block_bytes - 4);
        break;
      case DType::kQ4_K:
      case DType::kQ5_K:
        std::memset(block + 16, byte, info.block_bytes - 16);
        break;
      case DType::kQ6_K:
        std::memset(block, byte, 192);
        break;
      case DType::kQ2_K:
        std::memset(block + 16, byte, 64);
        break;
      case DType::kQ3_K:
        std::memset(block, byte, 96);
        break;
      case DType::kIQ4_NL:
        std::memset(block + 2, byte, 16);
        break;
      default:
        break;
    }
  }
  // Whole blocks of x at plus or minus the largest value.
  for (size_t k = 0; k < c.x.size(); ++k) {
    if (k % (2 * kBlock) < kBlock) c.x[k] = k / kBlock % 4 == 0 ? 3.0f : -3.0f;
  }
}

class Int8MatMulOfType : public testing::TestWithParam<DType> {
 protected:
  Case Make(RandomData& random, int64_t tokens, int64_t out, int64_t in) const {
    Case c{GetParam(), tokens, out, in, {}, {}};
    c.rows = random.Rows(c.type, out, in);
    c.x = random.Floats(tokens * in);
    return c;
  }
  static std::vector<float> Multiply(const Case& c, ThreadTeam& team) {
    const PackedMatrix packed =
        PackedMatrix::Pack(c.type, c.rows.data(), c.out, c.in, team, Activations::kInt8);
    EXPECT_EQ(packed.activations(), Activations::kInt8);
    std::vector<float> y(static_cast<size_t>(c.tokens * c.out), NAN);
    MatMul(c.x.data(), c.tokens, packed, y.data(), team);
    return y;
  }
};

TEST_P(Int8MatMulOfType, KeepsItsBoundsOnRandomShapes) {
  RandomData random(1017 + static_cast<uint64_t>(GetParam()));
  ThreadTeam team(2);
  const int64_t block = Info(GetParam()).block_values;
  for (int shape = 0; shape < 24; ++shape) {
    const int64_t tokens = shape < 14 ? shape + 1 : random.Integer(15, 70);
    const int64_t out = random.Integer(1, 35);
    const int64_t in = block * random.Integer(1, (shape % 8 == 0 ? 1024 : 256) / block);
    Case c = Make(random, tokens, out, in);
    if (shape % 4 == 3) MakeExtreme(c, random);
    SCOPED_TRACE(testing::Message() << "tokens " << tokens << " out " << out << " in " << in);
    ExpectWithinBounds(c, Multiply(c, team));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Int8MatMulOfType, PortableKernelsKeepTheirBounds) {
  RandomData random(1043 + static_cast<uint64_t>(GetParam()));
  const Case c = Make(random, 3, 13, 512);
  ThreadTeam team(1);
  const PackedMatrix packed =
      PackedMatrix::Pack(c.type, c.rows.data(), c.out, c.in, team, Activations::kInt8);
  std::vector<int8_t> quants(c.x.size());
  std::vector<float> scales(c.x.size() / 32), actual(static_cast<size_t>(c.tokens * c.out));
  cpu::QuantizeTask quantize{};
  quantize.x = c.x.data();
  quantize.tokens = quantize.last_token = c.tokens;
  quantize.in = c.in;
  quantize.quants = quants.data();
  quantize.scales = scales.data();
  cpu::kPortableKernels.quantize(quantize);
  cpu::Int8PanelTask task{};
  task.format = cpu::FormatOf(c.type, Activations::kInt8);
  task.panel = reinterpret_cast<const uint8_t*>(packed.data());
  task.panel_bytes = cpu::PanelBytes(task.format, c.in);
  task.in = c.in;
  task.tokens = c.tokens;
  task.x = quants.data();
  task.x_scales = scales.data();
  task.y = actual.data();
  task.y_stride = c.out;
  task.rows = c.out;
  task.panels = 1;
  cpu::kPortableKernels.int8_panels(task);
  ExpectWithinBounds(c, actual);
}

// Every count of tokens from 1 to 40, every team, against each row alone.
TEST_P(Int8MatMulOfType, BitsOfARowDependOnThatRowAlone) {
  RandomData random(1099 + static_cast<uint64_t>(GetParam()));
  ThreadTeam one(1), two(2), three(3);
  ThreadTeam* const teams[] = {&one, &two, &three};
  const int64_t most = 40;
  const Case c = Make(random, most, 37, Info(GetParam()).block_values == 32 ? 352 : 768);
  const PackedMatrix packed =
      PackedMatrix::Pack(c.type, c.rows.data(), c.out, c.in, two, Activations::kInt8);
  std::vector<float> alone(static_cast<size_t>(most * c.out));
  for (int64_t t = 0; t < most; ++t) {
    MatMul(c.x.data() + t * c.in, 1, packed, alone.data() + t * c.out, one);
  }
  for (int64_t tokens = 1; tokens <= most; ++tokens) {
    for (ThreadTeam* team : teams) {
      const int64_t first = random.Integer(0, most - tokens);
      std::vector<float> together(static_cast<size_t>(tokens * c.out));
      MatMul(c.x.data() + first * c.in, tokens, packed, together.data(), *team);
      const size_t bytes = together.size() * sizeof(float);
      ASSERT_EQ(std::memcmp(together.data(), alone.data() + first * c.out, bytes), 0)
          << tokens << " tokens, " << team->threads() << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Int8MatMulOfType, testing::ValuesIn(QuantisedTypes()),
                         [](const auto& info) { return std::string(Info(info.param).name); });

TEST(Int8MatMul, FloatWeightsKeepFloatActivations) {
  ThreadTeam team(1);
  RandomData random(3);
  const std::vector<uint8_t> rows = random.Rows(DType::kF16, 20, 33);
  const std::vector<float> x = random.Floats(33);
  const PackedMatrix asked =
      PackedMatrix::Pack(DType::kF16, rows.data(), 20, 33, team, Activations::kInt8);
  const PackedMatrix plain = PackedMatrix::Pack(DType::kF16, rows.data(), 20, 33, team);
  EXPECT_EQ(asked.activations(), Activations::kF32);
  std::vector<float> a(20), b(20);
  MatMul(x.data(), 1, asked, a.data(), team);
  MatMul(x.data(), 1, plain, b.data(), team);
  EXPECT_EQ(a, b);
}

TEST(Int8MatMul, MixesWithOtherActivationsInOneCall) {
  ThreadTeam team(2);
  RandomData random(4);
  const int64_t in = 512, tokens = 9;
  const std::vector<float> x = random.Floats(tokens * in);
  std::vector<PackedMatrix> matrices;
  std::vector<std::vector<float>> together, separate;
  for (const DType type : {DType::kQ4_1, DType::kQ6_K, DType::kF16, DType::kQ4_0}) {
    for (const Activations activations : {Activations::kF32, Activations::kInt8}) {
      const std::vector<uint8_t> rows = random.Rows(type, 21, in);
      matrices.push_back(PackedMatrix::Pack(type, rows.data(), 21, in, team, activations));
      together.emplace_back(static_cast<size_t>(tokens * 21));
      separate.push_back(together.back());
    }
  }
  std::vector<MatMulOutput> outputs;
  for (size_t i = 0; i < matrices.size(); ++i) {
    outputs.push_back({&matrices[i], together[i].data()});
    MatMul(x.data(), tokens, matrices[i], separate[i].data(), team);
  }
  MatMul(x.data(), tokens, outputs, team);
  EXPECT_EQ(together, separate);
}

// Inputs that have no finite scale, in one block of one row.
TEST(Int8MatMul, TellsUnusableInputs) {
  ThreadTeam team(1);
  RandomData random(5);
  const int64_t in = 128;
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0}) {
    const std::vector<uint8_t> rows = random.Rows(type, 16, in);
    const PackedMatrix packed =
        PackedMatrix::Pack(type, rows.data(), 16, in, team, Activations::kInt8);
    std::vector<float> y(32);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> x = random.Floats(2 * in);
      x[in + 70] = bad;
      MatMul(x.data(), 2, packed, y.data(), team);
      for (int o = 0; o < 16; ++o) {
        EXPECT_TRUE(std::isfinite(y[o]));
        EXPECT_TRUE(std::isnan(y[16 + o]));
      }
    }
    for (const float edge : {0.0f, 1e-42f, 1e-35f}) {  // zero, subnormal, below 2^-100
      const std::vector<float> x(static_cast<size_t>(in), edge);
      MatMul(x.data(), 1, packed, y.data(), team);
      for (int o = 0; o < 16; ++o) EXPECT_EQ(y[o], 0.0f);
    }
    const std::vector<float> large(static_cast<size_t>(in), 1e37f);
    MatMul(large.data(), 1, packed, y.data(), team);
    for (int o = 0; o < 16; ++o) EXPECT_TRUE(std::isfinite(y[o]));
  }
}

// The sums of x that kernels take the biases and mins off with, as the portable set makes them.
TEST(Int8Quantize, AgreesWithThePortableKernels) {
  RandomData random(7);
  const int64_t tokens = 3, in = 96, blocks = in / kBlock;
  const std::vector<float> x = random.Floats(tokens * in);
  struct Result {
    std::vector<int8_t> quants;
    std::vector<float> scales, sums;
    std::vector<int16_t> halves, lanes16, lanes32;
    bool operator==(const Result&) const = default;
  };
  const auto run = [&](const cpu::KernelSet& kernels) {
    Result r;
    r.quants.resize(static_cast<size_t>(tokens * in));
    r.scales.resize(static_cast<size_t>(tokens * blocks));
    r.sums.resize(r.scales.size());
    r.halves.resize(2 * r.scales.size());
    r.lanes16.resize(4 * r.scales.size());
    r.lanes32.resize(2 * r.scales.size());
    cpu::QuantizeTask task{x.data(),
                           tokens,
                           in,
                           0,
                           tokens,
                           r.quants.data(),
                           r.scales.data(),
                           r.sums.data(),
                           r.halves.data(),
                           r.lanes16.data(),
                           r.lanes32.data()};
    kernels.quantize(task);
    return r;
  };
  EXPECT_EQ(run(cpu::Kernels()), run(cpu::kPortableKernels));
}

TEST(Int8PackedMatrix, TakesTheSizeInTheFile) {
  ThreadTeam team(1);
  RandomData random(6);
  for (const DType type : QuantisedTypes()) {
    const std::vector<uint8_t> rows = random.Rows(type, 32, 1024);
    const PackedMatrix packed =
        PackedMatrix::Pack(type, rows.data(), 32, 1024, team, Activations::kInt8);
    EXPECT_LE(static_cast<double>(packed.bytes()), 1.04 * static_cast<double>(rows.size()))
        << Info(type).name;
  }
}

TEST(Int8KernelSet, HasItsOwnName) {
  EXPECT_NE(KernelSetName(Activations::kInt8), KernelSetName(Activations::kF32));
}

}  // namespace
}  // namespace hexad
