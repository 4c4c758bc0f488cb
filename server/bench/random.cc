#include "server/bench/random.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

namespace hexad {
namespace {
constexpr double kMaxTokens = 4 << 20;
}  // namespace

uint64_t BenchRandom::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double BenchRandom::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

uint64_t BenchRandom::Below(uint64_t bound) {
  return static_cast<uint64_t>(Uniform() * static_cast<double>(bound));
}

double BenchRandom::Normal() {
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

double BenchRandom::Exponential(double mean) { return -mean * std::log(1 - Uniform()); }

absl::StatusOr<LengthDistribution> LengthDistribution::Parse(std::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      "\"" + std::string(text) +
      "\" is no length: N, uniform:LOW:HIGH, normal:MEAN:DEVIATION, lognormal:MEDIAN:SIGMA or "
      "exponential:MEAN");
  std::vector<std::string_view> words;
  for (std::string_view rest = text;;) {
    const size_t colon = rest.find(':');
    words.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  LengthDistribution distribution;
  size_t first_number = 1;
  if (words.size() == 1) {
    first_number = 0;
  } else if (words.size() == 3 && words[0] == "uniform") {
    distribution.kind_ = Kind::kUniform;
  } else if (words.size() == 3 && words[0] == "normal") {
    distribution.kind_ = Kind::kNormal;
  } else if (words.size() == 3 && words[0] == "lognormal") {
    distribution.kind_ = Kind::kLogNormal;
  } else if (words.size() == 2 && words[0] == "exponential") {
    distribution.kind_ = Kind::kExponential;
  } else {
    return bad;
  }
  for (size_t i = first_number; i < words.size(); ++i) {
    double value = 0;
    const auto [end, error] =
        std::from_chars(words[i].data(), words[i].data() + words[i].size(), value);
    if (error != std::errc() || end != words[i].data() + words[i].size() || !(value >= 0) ||
        value > kMaxTokens) {
      return bad;
    }
    (i == first_number ? distribution.a_ : distribution.b_) = value;
  }
  if (distribution.a_ < 1) return bad;
  if (distribution.kind_ == Kind::kUniform && distribution.b_ < distribution.a_) return bad;
  return distribution;
}

int64_t LengthDistribution::Sample(BenchRandom& random) const {
  double value = a_;
  switch (kind_) {
    case Kind::kFixed:
      break;
    case Kind::kUniform:
      value = std::floor(a_ + random.Uniform() * (b_ - a_ + 1));
      break;
    case Kind::kNormal:
      value = a_ + b_ * random.Normal();
      break;
    case Kind::kLogNormal:
      value = a_ * std::exp(b_ * random.Normal());
      break;
    case Kind::kExponential:
      value = random.Exponential(a_);
      break;
  }
  return static_cast<int64_t>(std::clamp(std::round(value), 1.0, kMaxTokens));
}

}  // namespace hexad
