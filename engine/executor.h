#pragma once

// The seam between deciding and computing. One executor is one replica's device group.

#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "scheduler/step/model_shape.h"
#include "scheduler/step/plan.h"

namespace hexad {

class Executor {
 public:
  // Called exactly once per plan, in plan order, on a thread of the executor's. An error means
  // that the step had no effect on any slot's tokens; the slots stay open.
  using Done = absl::AnyInvocable<void(absl::StatusOr<StepResult>)>;

  virtual ~Executor() = default;  // waits for submitted plans; their Done have been called

  virtual const ModelShape& shape() const = 0;
  // Blocks of each group's pool, in the order of shape().kv.groups.
  virtual const std::vector<uint32_t>& pool_blocks() const = 0;

  // Never blocks on the device. May be called from one thread at a time.
  virtual void Submit(StepPlan plan, Done done) = 0;
};

}  // namespace hexad
