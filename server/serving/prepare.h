#pragma once

// From a GenerateCall to the requests that a replica computes: finds the model, renders the chat
// template, tokenises, checks lengths, hashes the prompt once. Runs on a tokeniser thread; every
// error is the client's and names the field.

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/serving/call_state.h"
#include "server/serving/planner_loop.h"

namespace hexad {

struct PrepareOptions {
  std::string server_secret;  // tenant salts derive from it
  uint64_t random_seed = 0;   // of this call, when the client gave none
};

// Fills the model and token counts of `state` and returns one request a choice.
absl::StatusOr<std::vector<RequestSpec>> Prepare(
    CallState& state, std::span<const std::unique_ptr<LoadedModel>> models,
    const PrepareOptions& options, absl::Time now);

}  // namespace hexad
