#pragma once

// How many blocks each group's pool gets from one byte budget. Pure functions.

#include <cstdint>
#include <vector>

#include "kvcache/core/groups.h"

namespace hexad {

struct KvBudget {
  int64_t bytes = 0;
  int32_t max_running = 1;         // sequences at a time
  int32_t max_chunk_tokens = 512;  // of one sequence in one step
  int32_t max_steps_in_flight = 2;
  int32_t kept_prefixes = 64;  // of ended sequences, that should stay usable in the window groups
};

// Blocks per group, in the order of layout.groups.
//
// However long the context, a window group needs no more than the window and the chunks in flight
// for each running sequence, and the window for each kept prefix. It gets that, but never more
// blocks than an equal number for every group would be: a short budget is best spent evenly. Full
// and latent groups share the rest in equal numbers, since they hold the same positions. Empty when
// the budget does not give every group a block. REQUIRES: bytes_per_token > 0 in every group.
std::vector<uint32_t> PartitionKvBudget(const KvLayout& layout, const KvBudget& budget);

// Bytes of one block of the group.
int64_t BlockBytes(const KvLayout& layout, uint32_t group);

}  // namespace hexad
