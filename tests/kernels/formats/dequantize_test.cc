#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace hexad {
namespace {

class DequantizeGolden : public testing::TestWithParam<DType> {};

std::string LowerName(DType type) {
  std::string name = Info(type).name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Files of tests/tools/make_dequant_goldens.py: what the gguf package makes of random blocks.
TEST_P(DequantizeGolden, EqualsGgufPackageBitForBit) {
  const DTypeInfo& info = Info(GetParam());
  const std::string path = std::string(HEXAD_SOURCE_DIR) + "/tests/kernels/formats/data/dequant_" +
                           LowerName(GetParam()) + ".bin";
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path;
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GE(bytes.size(), 4u);
  uint32_t blocks;
  std::memcpy(&blocks, bytes.data(), 4);
  ASSERT_GT(blocks, 0u);
  const int64_t values = int64_t{blocks} * info.block_values;
  const int64_t row_bytes = RowBytes(GetParam(), values);
  ASSERT_EQ(static_cast<int64_t>(bytes.size()), 4 + row_bytes + values * 4);
  ASSERT_TRUE(CanDequantize(GetParam()));
  std::vector<float> out(static_cast<size_t>(values));
  DequantizeRow(GetParam(), bytes.data() + 4, values, out.data());
  for (int64_t i = 0; i < values; ++i) {
    uint32_t expected;
    std::memcpy(&expected, bytes.data() + 4 + row_bytes + i * 4, 4);
    ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), expected) << "value " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, DequantizeGolden,
                         testing::Values(DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                                         DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K,
                                         DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                         DType::kIQ4_NL),
                         [](const auto& info) { return std::string(Info(info.param).name); });

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << half;
    } else {
      ASSERT_EQ(FloatToHalf(value), half);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t half = 0; half < 0x7bff; ++half) {
    const float low = HalfToFloat(static_cast<uint16_t>(half));
    const float high = HalfToFloat(static_cast<uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;  // exact
    const uint32_t even = half % 2 == 0 ? half : half + 1;
    ASSERT_EQ(FloatToHalf(middle), even) << half;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, high)), half + 1);
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000);
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::denorm_min()), 0);
}

}  // namespace
}  // namespace hexad
