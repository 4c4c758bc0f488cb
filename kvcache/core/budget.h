#pragma once

// How many blocks each group's pool gets from one byte budget.

#include <cstdint>
#include <vector>

#include "kvcache/core/groups.h"

namespace hexad {

struct KvBudget {
  int64_t bytes = 0;
  int32_t max_running = 1;         // sequences at a time
  int32_t max_chunk_tokens = 512;  // of one sequence in one step
  int32_t max_steps_in_flight = 2;
  int32_t max_context_tokens = 0;  // no sequence is longer; 0: unknown
};

// Blocks per group, in the order of layout.groups.
//
// A window group never needs more than its window and the chunks in flight for each running
// sequence, however long the context; full and latent groups share the rest in equal numbers of
// blocks, since they hold the same positions. When the window groups' need would leave the full
// groups fewer tokens than the window groups hold, all groups get equal numbers instead: a short
// budget is best spent evenly. Empty when the budget does not give every group one block.
std::vector<uint32_t> PartitionKvBudget(const KvLayout& layout, const KvBudget& budget);

// Bytes of one block of the group.
int64_t BlockBytes(const KvLayout& layout, uint32_t group);

}  // namespace hexad
