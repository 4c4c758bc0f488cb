#pragma once

// Predicts how long a step takes, from its shape, and learns from the steps that ran. Planner,
// batcher, simulator and emulated executor use the same model.
//
// Linear in the features of a step, which are those of the roofline's terms: what every step costs
// (the weights are read once), rows and tokens (matrix products), keys attended to (for a prompt
// this is the quadratic part), rows sampled (the vocabulary). The coefficients are fitted by
// recursive least squares on relative errors:
//
// - none is negative, and what the steps do not tell apart stays in the proportions of the guess;
// - steps with and without prefill are remembered apart, so that an hour of decoding does not wear
//   away what is known of prompts; of each, the last hundred or so count;
// - one step that took far longer than predicted is taken for an accident (a descheduled thread),
//   the second in a row for news, after which the past counts little.
//
// Deterministic: a function of the steps observed. Not thread-safe.

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace hexad {

struct StepShape {
  int32_t decode_rows = 0;             // rows that compute one token and sample
  int32_t prefill_tokens = 0;          // tokens of the other rows
  int64_t decode_context_tokens = 0;   // sum over the tokens computed of the keys each attends to
  int64_t prefill_context_tokens = 0;  // the same of the other rows
  int32_t sampled_rows = 0;
};

class CostModel final {
 public:
  struct Coefficients {
    absl::Duration per_step = absl::Milliseconds(1);
    absl::Duration per_decode_row = absl::Microseconds(500);
    absl::Duration per_prefill_token = absl::Microseconds(500);
    absl::Duration per_context_token = absl::Nanoseconds(50);  // of decodes
    absl::Duration per_prefill_context_token = absl::Nanoseconds(50);
    absl::Duration per_sampled_row = absl::Microseconds(50);
  };

  // A guess, to be replaced by the first steps.
  CostModel();
  // Known: trusted until steps say otherwise.
  explicit CostModel(const Coefficients& coefficients);

  absl::Duration StepTime(const StepShape& shape) const;

  // device_time <= 0: unknown, ignored.
  void Observe(const StepShape& shape, absl::Duration device_time);

  // Whether the time of a prompt's tokens is more than a guess.
  bool knows_prefill() const { return known_ || classes_[kPrefill].observed > 0; }

  // Mean of |predicted - observed| / observed over the last tens of steps, the accidents included;
  // 0 before the first.
  double error() const { return error_; }
  uint64_t accidents() const { return accidents_; }
  Coefficients coefficients() const;

 private:
  static constexpr int kFeatures = 6;
  using Features = std::array<double, kFeatures>;
  enum Class { kDecode, kPrefill, kClasses };
  struct Memory {                                // weighted sums over the steps of one class
    std::array<Features, kFeatures> products{};  // x x' / time^2
    Features targets{};                          // x / time
    int64_t observed = 0;
    bool suspicious = false;  // the last one took far too long
  };

  static Features FeaturesOf(const StepShape& shape);
  double Predict(const Features& features) const;  // seconds
  void Fit();

  Features guess_{};         // seconds
  Features coefficients_{};  // seconds
  std::array<Memory, kClasses> classes_;
  bool known_ = false;
  double error_ = 0;
  uint64_t observed_ = 0;
  uint64_t accidents_ = 0;
};

}  // namespace hexad
