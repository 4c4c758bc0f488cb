#pragma once

// Predicts how long a step takes, from its shape. Planner, batcher, simulator and emulated
// executor use the same model. Not thread-safe.

#include <cstdint>

#include "absl/time/time.h"

namespace hexad {

struct StepShape {
  int32_t decode_rows = 0;     // rows that compute one token
  int32_t prefill_tokens = 0;  // tokens of the other rows
  int64_t context_tokens = 0;  // sum over the tokens computed of the keys each attends to
  int32_t sampled_rows = 0;
};

// Linear in the shape, with one factor that follows the observed times.
class CostModel final {
 public:
  struct Coefficients {
    absl::Duration per_step = absl::Milliseconds(1);
    absl::Duration per_decode_row = absl::Microseconds(500);
    absl::Duration per_prefill_token = absl::Microseconds(500);
    absl::Duration per_context_token = absl::Nanoseconds(50);
    absl::Duration per_sampled_row = absl::Microseconds(50);
  };

  CostModel() = default;
  explicit CostModel(const Coefficients& coefficients) : coefficients_(coefficients) {}

  absl::Duration StepTime(const StepShape& shape) const { return factor_ * Predicted(shape); }

  // Moves the factor a tenth of the way to what this step would have needed.
  void Observe(const StepShape& shape, absl::Duration device_time) {
    const absl::Duration predicted = Predicted(shape);
    if (predicted <= absl::ZeroDuration() || device_time <= absl::ZeroDuration()) return;
    factor_ += 0.1 * (absl::FDivDuration(device_time, predicted) - factor_);
  }

 private:
  absl::Duration Predicted(const StepShape& shape) const {
    return coefficients_.per_step + shape.decode_rows * coefficients_.per_decode_row +
           shape.prefill_tokens * coefficients_.per_prefill_token +
           shape.context_tokens * coefficients_.per_context_token +
           shape.sampled_rows * coefficients_.per_sampled_row;
  }

  Coefficients coefficients_;
  double factor_ = 1;
};

}  // namespace hexad
