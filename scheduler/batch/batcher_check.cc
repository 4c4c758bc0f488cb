#include <algorithm>

#include "kvcache/core/check.h"
#include "scheduler/batch/batcher.h"

namespace hexad {

void Batcher::CheckInvariants() const {
  kv_.CheckInvariants();
  size_t waiting = 0, queued_tables = 0, with_table = 0;
  std::vector<bool> slot_used(config_.max_running);
  for (const auto& [id, sequence] : sequences_) {
    const bool runs = sequence->state == Sequence::State::kRunning;
    HEXAD_CHECK(sequence->id == id && sequence->spec.id == id, "a sequence under another's id");
    HEXAD_CHECK(sequence->known_tokens() < sequence->max_tokens, "a sequence past its end");
    HEXAD_CHECK(sequence->keys.size() == sequence->tokens.size() / kUnitTokens, "a key is missing");
    HEXAD_CHECK(runs == (sequence->incarnation != 0), "a row could find the wrong admission");
    waiting += !runs;
    if (!runs) {
      HEXAD_CHECK(waiting_.count(sequence.get()) == 1, "a sequence that neither waits nor runs");
    }
    if (sequence->state == Sequence::State::kWaiting) continue;
    ++with_table;
    queued_tables += !runs;
    const auto table = tables_.find(sequence->table);
    HEXAD_CHECK(table != tables_.end() && table->second == sequence.get(), "a table is lost");
    HEXAD_CHECK((sequence->state == Sequence::State::kFollowing) ==
                    kv_.producer(sequence->table).has_value(),
                "a wait without an end");
    if (!runs) continue;
    const size_t slot = static_cast<size_t>(sequence->slot);
    HEXAD_CHECK(slot < slot_used.size() && !slot_used[slot], "a slot is used twice");
    slot_used[slot] = true;
    HEXAD_CHECK(slots_[slot] == sequence.get(), "a slot that leads to another sequence");
    HEXAD_CHECK(kv_.computed_tokens(sequence->table) <= sequence->scheduled &&
                    sequence->scheduled <= sequence->planned_tokens() &&
                    sequence->planned_tokens() <= sequence->max_tokens,
                "a sequence runs ahead of itself");
    HEXAD_CHECK(sequence->samples_in_flight >= 0 &&
                    sequence->samples_in_flight <= static_cast<int64_t>(in_flight_.size()),
                "a sample is lost");
  }
  HEXAD_CHECK(waiting == waiting_.size(), "the queue holds what is not there");
  HEXAD_CHECK(running_.size() == sequences_.size() - waiting, "a running sequence is not there");
  HEXAD_CHECK(std::is_sorted(running_.begin(), running_.end(), SequenceOrder()), "disorder");
  HEXAD_CHECK(with_table == tables_.size(), "a table without a sequence");
  HEXAD_CHECK(static_cast<int64_t>(queued_tables) == queued_tables_, "a wrong count of tables");
  HEXAD_CHECK(free_slots_.size() + running_.size() == static_cast<size_t>(config_.max_running),
              "a slot is lost");
  for (SlotId slot : free_slots_) {
    HEXAD_CHECK(!slot_used[static_cast<size_t>(slot)] && !slots_[static_cast<size_t>(slot)],
                "a used slot is free");
    slot_used[static_cast<size_t>(slot)] = true;
  }
  HEXAD_CHECK(static_cast<int64_t>(in_flight_.size()) <= config_.max_steps_in_flight,
              "too many steps in flight");
}

}  // namespace hexad
