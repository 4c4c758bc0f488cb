#pragma once

// One request inside a batcher.

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "kvcache/core/replica_kv.h"
#include "kvcache/core/types.h"
#include "scheduler/step/plan.h"
#include "scheduler/step/request.h"

namespace hexad {

struct Sequence {
  enum class State : uint8_t {
    kWaiting,    // in the queue, without a table
    kFollowing,  // in the queue, with a table that fills while another sequence computes
    kReady,      // in the queue, with a table that is complete
    kRunning,    // has a slot
  };

  // What every step looks at comes first: with hundreds of sequences each cache line counts.
  RequestId id{};
  TableId table{};           // not in kWaiting
  uint64_t incarnation = 0;  // of the running ones, set anew at each admission; else 0
  uint64_t last_sample_step = 0;
  SlotId slot{};          // of the running ones, as the next three
  int32_t scheduled = 0;  // positions computed or in flight
  int32_t samples_in_flight = 0;
  uint32_t shipped_tokens = 0;  // for which the executor has the blocks
  int32_t max_tokens = 0;       // ends when `tokens` is as long
  int32_t output_tokens = 0;
  int32_t min_new_tokens = 0;
  State state = State::kWaiting;
  std::vector<TokenId> tokens;   // prompt and output, as far as known
  std::vector<TokenId> stops;    // the tokens that end it
  std::vector<ContentKey> keys;  // of the full units of `tokens`

  RequestSpec spec;  // without prompt, resumed_output and unit_keys
  int32_t prompt_tokens = 0;
  int32_t failures = 0;                  // steps with it that failed
  int32_t last_ready_tokens = -1;        // at the last admission that found no room
  std::optional<int32_t> cached_tokens;  // set at the first admission
  absl::Time first_scheduled = absl::InfinitePast();
  // Of long prompts, made when they arrive, so that the step that admits them does not pay for it.
  std::unique_ptr<SlotOpen> opening;
  PrefixGuess prefix_guess;

  int32_t known_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t planned_tokens() const { return known_tokens() + samples_in_flight; }
  // Positions to compute until the next sample; more than one is a prefill.
  int32_t remaining() const { return planned_tokens() - scheduled; }
};

// By (rank, arrival, id): low runs first, high is preempted first.
struct SequenceOrder {
  bool operator()(const Sequence* a, const Sequence* b) const {
    return std::tie(a->spec.rank, a->spec.arrival, a->spec.id) <
           std::tie(b->spec.rank, b->spec.arrival, b->spec.id);
  }
};

}  // namespace hexad
