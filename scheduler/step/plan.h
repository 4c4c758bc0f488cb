#pragma once

// The contract between the batcher, which decides, and an executor, which computes.
//
// A plan is a small diff on persistent executor slots, because shipping whole block tables costs
// more than the step's planning budget at long contexts. An executor applies a plan in this order:
// close, open, append, copy, then the rows. Plans arrive in order of `step`; several may be in
// flight, and a row whose input is TokenId::kPending takes the token that the previous step
// sampled for that slot.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "kvcache/core/types.h"
#include "scheduler/step/ids.h"
#include "scheduler/step/request.h"

namespace hexad {

// Slot state starts empty: no blocks, no history.
struct SlotOpen {
  SlotId slot{};
  RequestId request{};
  SamplingParams sampling;
  int32_t min_new_tokens = 0;  // end-of-sequence tokens are masked below this output length
  std::vector<TokenId> masked_until_min;  // which tokens those are
  // History for penalties: tokens known when the slot opens. What is sampled later is appended by
  // the executor itself.
  std::vector<TokenId> prompt;
  std::vector<TokenId> output;
};

// Blocks [first_block, first_block + num_blocks) of StepPlan::blocks become entries
// [first_index, ...) of the slot's table in `group`: entry i holds positions
// [i * block_tokens, (i+1) * block_tokens). Entries below a window are never read again.
struct BlockAppend {
  SlotId slot{};
  uint32_t group = 0;
  uint32_t first_index = 0;
  uint32_t first_block = 0;
  uint32_t num_blocks = 0;
};

struct BlockCopy {
  uint32_t group = 0;
  BlockId from{};
  BlockId to{};
};

// Tokens [first_token, first_token + num_tokens) of StepPlan::tokens are computed at positions
// [position, position + num_tokens) of the slot's sequence.
struct Row {
  SlotId slot{};
  int32_t position = 0;
  int32_t num_tokens = 0;
  uint32_t first_token = 0;
  bool sample = false;  // sample the token that follows the row's last one

  // Carried for later work; an executor refuses a value that it does not support.
  int32_t adapter = -1;
  int32_t draft_parent = -1;
  int32_t embedding = -1;
  int32_t grammar = -1;
};

struct StepPlan {
  StepId step{};
  std::vector<SlotId> closed;
  std::vector<SlotOpen> opened;
  std::vector<BlockAppend> appends;
  std::vector<BlockCopy> copies;
  std::vector<Row> rows;
  std::vector<BlockId> blocks;  // CSR payload of appends
  std::vector<TokenId> tokens;  // CSR payload of rows
};

struct RowResult {
  SlotId slot{};
  RequestId request{};
  // One token; more when drafts were accepted.
  std::vector<SampledToken> tokens;
  // 64-bit digest of the logits' bits before any sampling step, when the executor was asked for
  // digests; else 0.
  uint64_t logits_digest = 0;
};

struct StepResult {
  StepId step{};
  std::vector<RowResult> rows;  // of the rows that sample, in plan order
  absl::Duration device_time;
};

}  // namespace hexad
