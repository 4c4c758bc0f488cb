#pragma once

// Seeded randomness that gives the same numbers with every standard library: splitmix64 (Steele,
// Lea, Flood, "Fast splittable pseudorandom number generators", 2014) and distributions on top.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hexad {

class BenchRandom final {
 public:
  explicit BenchRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double Uniform();                // [0, 1)
  uint64_t Below(uint64_t bound);  // [0, bound); bound > 0
  double Normal();                 // mean 0, deviation 1
  double Exponential(double mean);

 private:
  uint64_t state_;
};

// A length in tokens: "128", "uniform:64:256", "normal:512:128", "lognormal:MEDIAN:SIGMA" or
// "exponential:MEAN".
class LengthDistribution final {
 public:
  static absl::StatusOr<LengthDistribution> Parse(std::string_view text);
  // At least 1, at most 4 Mi.
  int64_t Sample(BenchRandom& random) const;

 private:
  enum class Kind { kFixed, kUniform, kNormal, kLogNormal, kExponential };
  Kind kind_ = Kind::kFixed;
  double a_ = 1;
  double b_ = 0;
};

}  // namespace hexad
