#pragma once

// A batcher over an executor until every request has ended, with the digest of each step's logits.

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/executor.h"
#include "scheduler/batch/batcher.h"

namespace hexad {

struct BatcherRun {
  struct Answer {
    std::vector<TokenId> tokens;
    std::map<int32_t, uint64_t> digests;  // of the logits that gave output i, by i
    FinishReason reason{};
  };
  std::map<RequestId, Answer> answers;
  std::map<int32_t, int> row_tokens;  // how many rows computed that many tokens
  size_t most_rows = 0;               // of one step
};

struct BatcherRunOptions {
  // So many turns of the loop from one request to the next; 0: all at once.
  size_t arrive_every_turns = 0;
  // What the steps are said to take, so that plans do not depend on the clock; 0: no observation.
  absl::Duration device_time;
};

// Two steps may be in flight. Internal: a step failed, it does not end, or the logits for one
// output of a request were computed twice (before and after a preemption) and differ.
absl::StatusOr<BatcherRun> RunBatcher(Batcher& batcher, Executor& executor,
                                      const std::vector<RequestSpec>& specs,
                                      const BatcherRunOptions& options);

}  // namespace hexad
