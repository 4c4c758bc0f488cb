#include "tests/kernels/cpu/random_data.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/dequantize.h"

namespace hexad {

std::vector<int> ScaleOffsets(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

const std::vector<DType> kAllTypes = {DType::kF32,  DType::kF16,   DType::kBF16, DType::kQ8_0,
                                      DType::kQ4_0, DType::kQ4_1,  DType::kQ5_0, DType::kQ5_1,
                                      DType::kQ2_K, DType::kQ3_K,  DType::kQ4_K, DType::kQ5_K,
                                      DType::kQ6_K, DType::kIQ4_NL};

int64_t RandomData::Integer(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine_);
}

std::vector<float> RandomData::Floats(int64_t count, float deviation) {
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine_);
  return values;
}

std::vector<uint8_t> RandomData::Rows(DType type, int64_t rows, int64_t in) {
  const DTypeInfo& info = Info(type);
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * RowBytes(type, in)));
  if (info.block_values == 1) {
    const std::vector<float> values = Floats(rows * in);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = FloatToHalf(values[i]);
      uint32_t bits;
      std::memcpy(&bits, &values[i], 4);
      const uint16_t bfloat = static_cast<uint16_t>(bits >> 16);
      if (type == DType::kF32) std::memcpy(&bytes[i * 4], &values[i], 4);
      if (type == DType::kF16) std::memcpy(&bytes[i * 2], &half, 2);
      if (type == DType::kBF16) std::memcpy(&bytes[i * 2], &bfloat, 2);
    }
    return bytes;
  }
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Integer(0, 255));
  const std::vector<int> offsets = ScaleOffsets(type);
  for (size_t block = 0; block < bytes.size(); block += static_cast<size_t>(info.block_bytes)) {
    const std::vector<float> scales = Floats(static_cast<int64_t>(offsets.size()), 1.0f / 64);
    for (size_t i = 0; i < offsets.size(); ++i) {
      const uint16_t half = FloatToHalf(scales[i]);
      std::memcpy(&bytes[block + static_cast<size_t>(offsets[i])], &half, 2);
    }
  }
  return bytes;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    if (!(difference <= largest)) {
      largest = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
    }
  }
  return largest;
}

}  // namespace hexad
