#include "kernels/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

struct Sequences {
  std::vector<std::vector<uint32_t>> tables;
  std::vector<KvSequence> sequences;

  void Add(std::vector<uint32_t> table, int64_t first_position, int32_t rows) {
    tables.push_back(std::move(table));
    sequences.push_back({nullptr, first_position, rows});
    for (size_t i = 0; i < tables.size(); ++i) sequences[i].blocks = tables[i].data();
  }
};

// Random branches of a tree of prefixes; each node a segment or less.
Sequences RandomTree(RandomData& random, int32_t block_tokens, int32_t most_rows) {
  Sequences result;
  const int64_t count = random.Integer(1, 12);
  uint32_t next = 0;
  for (int64_t s = 0; s < count; ++s) {
    const int64_t tokens = random.Integer(1, 2500);
    const auto rows = static_cast<int32_t>(std::min(tokens, random.Integer(1, most_rows)));
    const int64_t first = tokens - rows;
    std::vector<uint32_t> table((tokens + block_tokens - 1) / block_tokens);
    for (uint32_t& block : table) block = next++;
    if (s > 0 && random.Integer(0, 3) > 0) {
      const auto other = static_cast<size_t>(random.Integer(0, s - 1));
      const int64_t full = std::min(first, result.sequences[other].first_position) / block_tokens;
      const int64_t same = random.Integer(0, 1) == 0 ? full : random.Integer(0, full);
      std::copy_n(result.tables[other].begin(), same, table.begin());
    }
    result.Add(std::move(table), first, rows);
  }
  return result;
}

// By definition: the sequences in whose table and sight a segment is the same, segment by segment.
std::map<int64_t, std::set<std::set<int32_t>>> SharedByForce(const Sequences& all,
                                                             int32_t block_tokens, int32_t window) {
  std::map<int64_t, std::set<std::set<int32_t>>> result;
  const auto key = [&](const KvSequence& sequence, int64_t segment) {
    std::vector<int64_t> tokens;  // where each lies; empty when not all are seen by all queries
    const int64_t last = sequence.first_position + sequence.num_rows - 1;
    for (int64_t p = segment * 256; p < segment * 256 + 256; ++p) {
      if (p > sequence.first_position || (window > 0 && p <= last - window)) return tokens = {};
      tokens.push_back(int64_t{sequence.blocks[p / block_tokens]} * block_tokens +
                       p % block_tokens);
    }
    return tokens;
  };
  for (int64_t segment = 0; segment < 12; ++segment) {
    std::map<std::vector<int64_t>, std::set<int32_t>> classes;
    for (size_t i = 0; i < all.sequences.size(); ++i) {
      classes[key(all.sequences[i], segment)].insert(static_cast<int32_t>(i));
    }
    for (const auto& [tokens, members] : classes) {
      if (!tokens.empty() && members.size() > 1) result[segment].insert(members);
    }
  }
  return result;
}

TEST(SharedRuns, EqualBruteForceOnRandomTrees) {
  RandomData random(1);
  size_t found = 0;
  for (int round = 0; round < 300; ++round) {
    const int32_t blocks[] = {16, 32, 48, 256, 512};
    const int32_t block_tokens = blocks[random.Integer(0, 4)];
    const Sequences all = RandomTree(random, block_tokens, 4);
    const std::vector<SharedRun> runs = FindSharedRuns(all.sequences, block_tokens, 0, 4);
    std::map<int64_t, std::set<std::set<int32_t>>> actual;
    for (const SharedRun& run : runs) {
      EXPECT_TRUE(std::is_sorted(run.sequences.begin(), run.sequences.end()));
      EXPECT_LT(run.first_segment, run.last_segment);
      for (int64_t s = run.first_segment; s < run.last_segment; ++s) {
        EXPECT_TRUE(actual[s].insert({run.sequences.begin(), run.sequences.end()}).second);
        ++found;
      }
    }
    EXPECT_EQ(actual, SharedByForce(all, block_tokens, 0)) << "round " << round;
  }
  EXPECT_GT(found, 500u);
}

// With a window a sequence that was alone is not asked again, so only what is found must be true.
TEST(SharedRuns, AreTrueWithWindows) {
  RandomData random(2);
  size_t found = 0;
  for (int round = 0; round < 300; ++round) {
    const Sequences all = RandomTree(random, 16, 4);
    const int32_t window = static_cast<int32_t>(random.Integer(300, 2000));
    const auto allowed = SharedByForce(all, 16, window);
    for (const SharedRun& run : FindSharedRuns(all.sequences, 16, window, 4)) {
      for (int64_t s = run.first_segment; s < run.last_segment; ++s, ++found) {
        ASSERT_TRUE(allowed.contains(s));
        EXPECT_TRUE(std::any_of(allowed.at(s).begin(), allowed.at(s).end(),
                                [&](const std::set<int32_t>& together) {
                                  return std::includes(together.begin(), together.end(),
                                                       run.sequences.begin(), run.sequences.end());
                                }));
      }
    }
  }
  EXPECT_GT(found, 100u);
}

TEST(SharedRuns, JoinSegmentsAndLeaveOutLongRows) {
  std::vector<uint32_t> prefix(32), table;
  for (uint32_t i = 0; i < 32; ++i) prefix[i] = i;
  Sequences all;
  for (uint32_t s = 0; s < 4; ++s) {
    table = prefix;
    for (uint32_t i = 0; i < 8; ++i) table.push_back(100 + s * 8 + i);
    all.Add(table, 600 + s, s == 3 ? 5 : 1);
  }
  const std::vector<SharedRun> expected = {{{0, 1, 2}, 0, 2}};
  EXPECT_EQ(FindSharedRuns(all.sequences, 16, 0, 4), expected);
  EXPECT_TRUE(FindSharedRuns({all.sequences.data(), 1}, 16, 0, 4).empty());
  EXPECT_TRUE(FindSharedRuns({}, 16, 0, 4).empty());
}

// Every row meets every segment that it sees exactly once, and finds its partials in order.
TEST(AttentionPlan, CoversEverythingOnce) {
  RandomData random(3);
  for (int round = 0; round < 200; ++round) {
    const int32_t windows[] = {0, 0, 100, 700};
    const int32_t window = windows[random.Integer(0, 3)];
    const Sequences all = RandomTree(random, 16, round % 2 == 0 ? 3 : 200);
    const KvBlockShape layout{DType::kF16, 2, 64, 16};
    const int32_t heads_per_kv = static_cast<int32_t>(random.Integer(1, 9));
    AttentionPlan plan;
    PlanAttention({all.sequences, layout, 2 * heads_per_kv, window,
                   static_cast<int32_t>(random.Integer(1, 4)), round % 3 > 0},
                  plan);
    std::map<std::pair<int32_t, int64_t>, int64_t> slot_of;  // piece, segment; -1: whole
    std::set<int64_t> slots;
    for (const AttentionPlan::Task& task : plan.tasks) {
      int64_t slot = task.first_slot;
      for (int64_t s = task.first_segment; s < task.last_segment; ++s) {
        if (task.merged) slot = task.first_slot;
        for (int32_t i = task.first_member; i < task.last_member; ++i) {
          const int32_t piece = plan.members[i];
          EXPECT_TRUE(slot_of.emplace(std::pair(piece, s), task.whole ? -1 : slot).second);
          const int64_t rows = int64_t{plan.pieces[piece].queries} * heads_per_kv;
          const bool first = s == task.first_segment || !task.merged;
          for (int64_t r = 0; r < rows && first && !task.whole; ++r) {
            EXPECT_TRUE(slots.insert(slot + r).second);
          }
          slot += rows;
        }
      }
    }
    EXPECT_EQ(static_cast<int64_t>(slots.size()), plan.num_slots);
    size_t seen = 0;
    for (size_t i = 0; i < plan.pieces.size(); ++i) {
      const AttentionPlan::Piece& piece = plan.pieces[i];
      const int64_t first =
          window > 0 ? std::max<int64_t>(0, piece.first_position - window + 1) / 256 : 0;
      const int64_t last = (piece.first_position + piece.queries - 1) / 256;
      std::vector<int64_t> expected;
      for (int64_t s = first; s <= last; ++s, ++seen) {
        const auto found = slot_of.find({static_cast<int32_t>(i), s});
        ASSERT_NE(found, slot_of.end());
        if (found->second < 0) continue;
        if (expected.empty() || expected.back() != found->second) expected.push_back(found->second);
      }
      const std::vector<int64_t> sources(plan.sources.begin() + piece.first_source,
                                         plan.sources.begin() + piece.last_source);
      EXPECT_EQ(sources, expected);
    }
    EXPECT_EQ(seen, slot_of.size());
  }
}

}  // namespace
}  // namespace hexad
