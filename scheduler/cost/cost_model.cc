#include "scheduler/cost/cost_model.h"

#include <algorithm>
#include <cmath>

namespace hexad {
namespace {

constexpr double kForget = 0.98;       // per step of the same class
constexpr double kPrior = 0.02;        // what the guess's proportions weigh, in steps
constexpr double kTooLong = 2.5;       // times the prediction: an accident or news
constexpr int64_t kTrustedAfter = 8;   // steps of the class, before which everything is news
constexpr double kForgetAtNews = 0.1;  // the past's weight when times have changed
constexpr int kSweeps = 40;
constexpr double kErrorSteps = 32;

}  // namespace

CostModel::CostModel() : CostModel(Coefficients()) { known_ = false; }

CostModel::CostModel(const Coefficients& coefficients) : known_(true) {
  guess_ = {absl::ToDoubleSeconds(coefficients.per_step),
            absl::ToDoubleSeconds(coefficients.per_decode_row),
            absl::ToDoubleSeconds(coefficients.per_prefill_token),
            absl::ToDoubleSeconds(coefficients.per_context_token),
            absl::ToDoubleSeconds(coefficients.per_prefill_context_token),
            absl::ToDoubleSeconds(coefficients.per_sampled_row)};
  for (double& each : guess_) each = std::max(each, 0.0);
  coefficients_ = guess_;
}

CostModel::Features CostModel::FeaturesOf(const StepShape& shape) {
  return {1.0,
          static_cast<double>(shape.decode_rows),
          static_cast<double>(shape.prefill_tokens),
          static_cast<double>(shape.decode_context_tokens),
          static_cast<double>(shape.prefill_context_tokens),
          static_cast<double>(shape.sampled_rows)};
}

double CostModel::Predict(const Features& features) const {
  double seconds = 0;
  for (int i = 0; i < kFeatures; ++i) seconds += coefficients_[i] * features[i];
  return seconds;
}

absl::Duration CostModel::StepTime(const StepShape& shape) const {
  return absl::Seconds(Predict(FeaturesOf(shape)));
}

CostModel::Coefficients CostModel::coefficients() const {
  return {absl::Seconds(coefficients_[0]), absl::Seconds(coefficients_[1]),
          absl::Seconds(coefficients_[2]), absl::Seconds(coefficients_[3]),
          absl::Seconds(coefficients_[4]), absl::Seconds(coefficients_[5])};
}

void CostModel::Observe(const StepShape& shape, absl::Duration device_time) {
  const double seconds = absl::ToDoubleSeconds(device_time);
  if (!(seconds > 0) || !std::isfinite(seconds)) return;
  const Features features = FeaturesOf(shape);
  const double predicted = Predict(features);
  ++observed_;
  // At most 1 when the step took longer than predicted; bounded the other way too, for the mean.
  const double error = std::min(std::abs(predicted - seconds) / seconds, 10.0);
  error_ += (error - error_) / std::min(static_cast<double>(observed_), kErrorSteps);

  Memory& memory = classes_[shape.prefill_tokens > 0 ? kPrefill : kDecode];
  const bool too_long = seconds > kTooLong * predicted;
  double forget = kForget;
  if (too_long && memory.observed >= kTrustedAfter) {
    if (!memory.suspicious) {
      memory.suspicious = true;
      ++accidents_;
      return;
    }
    forget = kForgetAtNews;
  }
  memory.suspicious = false;
  ++memory.observed;
  for (int i = 0; i < kFeatures; ++i) {
    for (int j = 0; j < kFeatures; ++j) {
      memory.products[i][j] =
          forget * memory.products[i][j] + features[i] * features[j] / (seconds * seconds);
    }
    memory.targets[i] = forget * memory.targets[i] + features[i] / seconds;
  }
  Fit();
}

// Minimises, over u >= 0 with coefficients = scale * guess * u, the weighted squares of
// (predicted - observed) / observed plus kPrior * |u - 1|^2, by coordinate descent. The scale is
// what fits best when the guess's proportions are right.
void CostModel::Fit() {
  double numerator = 0, denominator = 0;
  std::array<Features, kFeatures> products{};
  Features targets{};
  for (int i = 0; i < kFeatures; ++i) {
    for (int j = 0; j < kFeatures; ++j) {
      for (const Memory& memory : classes_) products[i][j] += memory.products[i][j];
      products[i][j] *= guess_[i] * guess_[j];
      denominator += products[i][j];
    }
    for (const Memory& memory : classes_) targets[i] += memory.targets[i];
    targets[i] *= guess_[i];
    numerator += targets[i];
  }
  if (!(denominator > 0)) return;
  const double scale = numerator / denominator;
  if (!(scale > 0) || !std::isfinite(scale)) return;

  Features factors;  // u
  for (int i = 0; i < kFeatures; ++i) {
    factors[i] = guess_[i] > 0 ? coefficients_[i] / (guess_[i] * scale) : 0;
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (int i = 0; i < kFeatures; ++i) {
      double residual = scale * targets[i] + kPrior;
      for (int j = 0; j < kFeatures; ++j) {
        if (j != i) residual -= scale * scale * products[i][j] * factors[j];
      }
      const double next = std::max(0.0, residual / (scale * scale * products[i][i] + kPrior));
      moved = std::max(moved, std::abs(next - factors[i]));
      factors[i] = next;
    }
    if (moved < 1e-6) break;
  }
  for (int i = 0; i < kFeatures; ++i) coefficients_[i] = scale * guess_[i] * factors[i];
}

}  // namespace hexad
