#pragma once

// Random inputs of kernel tests; the seed is the caller's.

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/types.h"

namespace hexad {

class RandomData final {
 public:
  explicit RandomData(uint64_t seed) : engine_(seed) {}

  int64_t Integer(int64_t low, int64_t high);  // inclusive
  std::vector<float> Floats(int64_t count, float deviation = 1.0f);
  // `rows` rows of valid blocks: any quants, scales near 1/64 so that products stay near 1.
  std::vector<uint8_t> Rows(DType type, int64_t rows, int64_t in);

 private:
  std::mt19937_64 engine_;
};

extern const std::vector<DType> kAllTypes;

// Byte offsets of the halves in a quantised block that are its scales.
std::vector<int> ScaleOffsets(DType type);

// Largest |a - b|, over both; NaN counts as infinite.
double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace hexad
