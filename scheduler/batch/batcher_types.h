#pragma once

// What goes into a batcher and what can be read of it.

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/cost/cost_model.h"
#include "scheduler/step/plan.h"
#include "scheduler/step/request.h"

namespace hexad {

struct BatcherConfig {
  absl::Duration step_target = absl::Milliseconds(100);
  // A step without decodes makes nobody's tokens late: it may take this times as long, so that a
  // prompt alone pays little for being cut. Not longer, since whoever comes meanwhile waits for it.
  double idle_step_factor = 4;
  int32_t max_running = 64;  // sequences with an executor slot; slot ids are below it
  int32_t max_waiting = 1024;
  int32_t max_steps_in_flight = 2;
  int32_t max_step_tokens = 8192;  // at least max_running + min_chunk_tokens are always allowed
  // The first prefill of a step gets this many tokens even when decodes alone use up the target, so
  // that everything progresses.
  int32_t min_chunk_tokens = 16;
  int32_t max_chunk_tokens = 512;  // of one prompt in one step; past it nothing is gained
  // As long as the time of a prompt's tokens is a guess; beside decodes, min_chunk_tokens. 0: off.
  int32_t first_chunk_tokens = 64;
  int32_t max_context_tokens = 0;  // prompt and output of one sequence; 0: what the pools hold
  std::vector<TokenId> end_of_sequence;  // the model's, which ignore_end_of_sequence is about
};

struct Submit {
  RequestSpec spec;
};
// The planner's order. Orders of an older term than one already seen are refused.
struct Reorder {
  RequestId request{};
  double rank = 0;
  uint64_t term = 0;
};
struct Cancel {
  RequestId request{};
};
// The emitter found a stop string: only the first output_tokens count, resumed ones included. The
// request ends with kStop, and nothing more of it is committed.
struct StopAt {
  RequestId request{};
  int32_t output_tokens = 0;
};
// In plan order, exactly one of the two for every plan.
struct StepDone {
  StepResult result;
};
struct StepFailed {
  StepId step{};
};
// From now on nothing is admitted to the queue; what is in it runs to its end.
struct Drain {};

using ReplicaEvent = std::variant<Submit, Reorder, Cancel, StopAt, StepDone, StepFailed, Drain>;

// What became of an event.
enum class Outcome : uint8_t {
  kDone,
  kUnknownRequest,  // not here, or ended already: ignored
  kStaleTerm,       // Reorder: ignored
  // Refused submits. All but kDuplicate have been answered with kFinished(kFailed) already.
  kQueueFull,
  kDraining,
  kNeverFits,  // longer than the pools or the context allow
  kInvalid,    // an empty prompt or a negative token id
  kDuplicate,  // the id is alive: nothing was done
};

struct BatcherStats {
  int32_t running = 0;
  int32_t waiting = 0;    // the following ones included
  int32_t following = 0;  // wait for a prefix that a running sequence computes
  int32_t steps_in_flight = 0;
  std::vector<uint32_t> free_blocks;   // per group, the cached ones included
  std::vector<uint32_t> total_blocks;  // per group
  StepShape last_step;                 // of the latest plan
  double step_time_error = 0;          // mean of |predicted - observed| / observed, lately
  // Since the start:
  uint64_t preemptions = 0;
  uint64_t failed_steps = 0;
  uint64_t prompt_tokens = 0;  // of the requests admitted once
  uint64_t cached_tokens = 0;  // those of them not computed
  uint64_t output_tokens = 0;
};

}  // namespace hexad
