#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/attention_plan.h"
#include "kernels/cpu/attention_kernels.h"
#include "kernels/dequantize.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/cpu/random_data.h"

namespace hexad {
namespace {

// A pool whose blocks are handed out in shuffled order. What nobody wrote is NaN, so that a kernel
// that uses it is found out.
class Pool final {
 public:
  Pool(const KvBlockShape& layout, int64_t blocks, RandomData& random)
      : memory_(static_cast<size_t>(2 * blocks * layout.BlockBytes() + 64)), free_(blocks) {
    // As halves these are NaN too: the scales of kQ8_0.
    if (layout.type == DType::kF32) {
      for (size_t i = 0; i + 4 <= memory_.size(); i += 4) std::memcpy(&memory_[i], &kNan, 4);
    } else {
      for (size_t i = 0; i + 2 <= memory_.size(); i += 2) std::memcpy(&memory_[i], &kNanHalf, 2);
    }
    std::byte* base = memory_.data();
    base += (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
    pool_ = {layout, base, base + blocks * layout.BlockBytes()};
    std::iota(free_.begin(), free_.end(), 0u);
    for (size_t i = free_.size(); i > 1; --i) {
      std::swap(free_[i - 1], free_[static_cast<size_t>(random.Integer(0, int64_t(i) - 1))]);
    }
  }

  const KvPool& pool() const { return pool_; }

  std::vector<uint32_t> Table(int64_t tokens) {
    std::vector<uint32_t> table;
    for (int64_t t = 0; t < tokens; t += pool_.layout.block_tokens) {
      table.push_back(free_.back());
      free_.pop_back();
    }
    return table;
  }

 private:
  static constexpr float kNan = NAN;
  static constexpr uint16_t kNanHalf = 0x7e00;
  std::vector<std::byte> memory_;
  std::vector<uint32_t> free_;
  KvPool pool_;
};

struct Shape {
  KvBlockShape layout;
  int heads;
  float softcap;
  int window;
};

Shape RandomShape(RandomData& random) {
  Shape shape;
  const int dims[] = {8, 24, 32, 64, 64, 80, 96, 128, 256, 512};
  const int blocks[] = {16, 32, 48, 64, 272};
  const DType types[] = {DType::kF32, DType::kF16, DType::kQ8_0};
  shape.layout.type = types[random.Integer(0, 2)];
  shape.layout.kv_heads = static_cast<int>(random.Integer(1, 3));
  do {
    shape.layout.head_dim = dims[random.Integer(0, 9)];
  } while (shape.layout.type == DType::kQ8_0 && shape.layout.head_dim % 32 != 0);
  shape.layout.block_tokens = blocks[random.Integer(0, 4)];
  shape.heads = shape.layout.kv_heads * static_cast<int>(random.Integer(1, 16));
  shape.softcap = random.Integer(0, 2) == 0 ? 5.0f : 0.0f;
  const int windows[] = {0, 0, 0, 1, 7, 100, 256, 300, 600};
  shape.window = windows[random.Integer(0, 8)];
  return shape;
}

AttentionArgs MakeArgs(const Shape& shape, const Pool& pool,
                       const std::vector<KvSequence>& sequences, const std::vector<float>& q,
                       std::vector<float>& out) {
  out.assign(q.size(), NAN);
  AttentionArgs args;
  args.q = q.data();
  args.out = out.data();
  args.heads = shape.heads;
  args.pool = pool.pool();
  args.sequences = sequences;
  args.scale = 1.0f / std::sqrt(static_cast<float>(shape.layout.head_dim));
  args.softcap = shape.softcap;
  args.window = shape.window;
  return args;
}

// A step of a few sequences, the later of which may begin with blocks of the first one.
struct RandomStep {
  RandomStep(const Shape& shape, int64_t most_tokens, int64_t most_rows, RandomData& random)
      : pool(shape.layout, 12 * most_tokens / shape.layout.block_tokens + 12, random) {
    const int64_t width = int64_t{shape.layout.kv_heads} * shape.layout.head_dim;
    const bool related = random.Integer(0, 1) == 0;
    const int64_t count = random.Integer(1, related ? 6 : 3);
    ThreadTeam team(1);
    for (int64_t s = 0; s < count; ++s) {
      const int64_t tokens = random.Integer(related ? most_tokens / 2 : 1, most_tokens);
      const int64_t rows = std::min(tokens, random.Integer(1, most_rows));
      tables.push_back(pool.Table(tokens));
      // Blocks that this sequence writes, or has not full, are its own.
      int64_t shared = 0;
      if (related && s > 0) {
        const int64_t full = std::min(tokens - rows, lengths[0]) / shape.layout.block_tokens;
        shared = random.Integer(0, 2) == 0 ? random.Integer(0, full) : full;
        std::copy_n(tables[0].begin(), shared, tables.back().begin());
        shared *= shape.layout.block_tokens;
      }
      const auto written = static_cast<int32_t>(tokens - shared);
      const KvSequence fresh{tables.back().data(), shared, written};
      const std::vector<float> k = random.Floats(written * width),
                               v = random.Floats(written * width);
      StoreKv(pool.pool(), {&fresh, 1}, k.data(), v.data(), team);
      queries.push_back({tables.back().data(), tokens - rows, static_cast<int32_t>(rows)});
      lengths.push_back(tokens - rows);
      q_rows += rows;
    }
    q = random.Floats(q_rows * shape.heads * shape.layout.head_dim);
  }

  Pool pool;
  std::vector<std::vector<uint32_t>> tables;
  std::vector<int64_t> lengths;  // positions that a later sequence may share
  std::vector<KvSequence> queries;
  int64_t q_rows = 0;
  std::vector<float> q;
};

TEST(Attention, EqualsReferenceOnRandomShapes) {
  RandomData random(2024);
  ThreadTeam one(1), team(2);
  int with_sharing = 0;
  for (int round = 0; round < 200; ++round) {
    const Shape shape = RandomShape(random);
    // The reference takes as long as there are heads, dimensions, rows and tokens.
    const int64_t work = int64_t{shape.heads} * shape.layout.head_dim;
    const int64_t most_tokens = round % 4 == 0 && work <= 768 ? 800 : work < 2048 ? 300 : 60;
    const int64_t most_rows =
        round % 2 == 0 ? 1 : std::clamp<int64_t>(300'000 / (work * most_tokens), 1, 20);
    RandomStep step(shape, most_tokens, most_rows, random);
    const auto context = [&] {
      return "round " + std::to_string(round) + " " + Info(shape.layout.type).name + " heads " +
             std::to_string(shape.heads) + "/" + std::to_string(shape.layout.kv_heads) + " dim " +
             std::to_string(shape.layout.head_dim) + " window " + std::to_string(shape.window) +
             " block " + std::to_string(shape.layout.block_tokens);
    };
    std::vector<float> actual, apart, expected;
    Attention(MakeArgs(shape, step.pool, step.queries, step.q, actual), team);
    reference::Attention(MakeArgs(shape, step.pool, step.queries, step.q, expected));
    ASSERT_LT(LargestDifference(actual, expected), 1e-4) << context();
    // The same bits without sharing and without dividing.
    AttentionPlan plan;
    PlanAttention({step.queries, shape.layout, shape.heads, shape.window, 1, false}, plan);
    EXPECT_EQ(plan.num_slots, 0);
    AttentionArgs args = MakeArgs(shape, step.pool, step.queries, step.q, apart);
    args.plan = &plan;
    Attention(args, one);
    ASSERT_EQ(actual, apart) << context();
    PlanAttention({step.queries, shape.layout, shape.heads, shape.window, 2, true}, plan);
    for (const AttentionPlan::Task& task : plan.tasks) {
      with_sharing += task.last_member - task.first_member > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(with_sharing, 5);
}

TEST(StoreKv, EqualsReference) {
  RandomData random(7);
  ThreadTeam team(2);
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0}) {
    const KvBlockShape layout{type, 2, 64, 32};
    Pool pool(layout, 8, random), other(layout, 8, random);
    const std::vector<uint32_t> table = pool.Table(100), other_table = other.Table(100);
    const KvSequence sequence{table.data(), 29, 45}, same{other_table.data(), 29, 45};
    std::vector<float> k = random.Floats(45 * 128), v = random.Floats(45 * 128);
    // Nothing at all; too small and too large for halves.
    std::fill_n(k.begin(), 32, 0.0f);
    v[5] = 1e30f;
    v[40] = 1e-30f;
    v[64] = -70000.0f;
    for (int i = 96; i < 128; ++i) v[i] *= 1e-7f;
    StoreKv(pool.pool(), {&sequence, 1}, k.data(), v.data(), team);
    reference::StoreKv(other.pool(), {&same, 1}, k.data(), v.data());
    for (int64_t row = 0; row < 45; ++row) {
      const auto block = static_cast<size_t>((29 + row) / 32);
      const int token = static_cast<int>((29 + row) % 32);
      for (int i = 0; i < 128; ++i) {
        const float stored_k = reference::LoadK(pool.pool(), table[block], token, i / 64, i % 64);
        const float stored_v = reference::LoadV(pool.pool(), table[block], token, i / 64, i % 64);
        ASSERT_EQ(stored_k,
                  reference::LoadK(other.pool(), other_table[block], token, i / 64, i % 64));
        ASSERT_EQ(stored_v,
                  reference::LoadV(other.pool(), other_table[block], token, i / 64, i % 64));
        ASSERT_TRUE(std::isfinite(stored_v));
        if (row == 0) continue;
        const float error = type == DType::kF32 ? 0 : type == DType::kF16 ? 1e-3f : 5e-3f;
        ASSERT_NEAR(stored_k, k[row * 128 + i], error * 4);
        ASSERT_NEAR(stored_v, v[row * 128 + i], error * 4);
      }
    }
    EXPECT_TRUE(std::isnan(reference::LoadK(pool.pool(), table[0], 28, 0, 0)));
    EXPECT_TRUE(std::isnan(reference::LoadV(pool.pool(), table[2], 10, 1, 63)));
  }
}

// One sequence written and attended to in the given chunks; [tokens, heads, head_dim].
std::vector<float> RunInChunks(const Shape& shape, const std::vector<int>& chunks,
                               const std::vector<float>& q, const std::vector<float>& k,
                               const std::vector<float>& v, ThreadTeam& team, RandomData& random) {
  const int64_t tokens = std::accumulate(chunks.begin(), chunks.end(), int64_t{0});
  const int64_t width = int64_t{shape.layout.kv_heads} * shape.layout.head_dim;
  const int64_t q_width = int64_t{shape.heads} * shape.layout.head_dim;
  Pool pool(shape.layout, 64, random);
  const std::vector<uint32_t> table = pool.Table(tokens);
  std::vector<float> all;
  int64_t position = 0;
  for (const int chunk : chunks) {
    const std::vector<KvSequence> sequences = {{table.data(), position, chunk}};
    StoreKv(pool.pool(), sequences, k.data() + position * width, v.data() + position * width, team);
    const std::vector<float> rows(q.begin() + position * q_width,
                                  q.begin() + (position + chunk) * q_width);
    std::vector<float> out;
    Attention(MakeArgs(shape, pool, sequences, rows, out), team);
    all.insert(all.end(), out.begin(), out.end());
    position += chunk;
  }
  return all;
}

TEST(Attention, BitsDoNotDependOnChunksBlocksOrThreads) {
  RandomData random(11);
  ThreadTeam one(1), two(2), three(3);
  const int64_t tokens = 600;
  for (const int window : {0, 290}) {
    for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0}) {
      Shape shape{{type, 2, 32, 16}, 6, 0.0f, window};
      const std::vector<float> q = random.Floats(tokens * 6 * 32);
      const std::vector<float> k = random.Floats(tokens * 64), v = random.Floats(tokens * 64);
      const std::vector<float> whole = RunInChunks(shape, {600}, q, k, v, one, random);
      ASSERT_EQ(LargestDifference(whole, whole), 0);  // no NaN, so that == means equal bits
      shape.layout.block_tokens = 64;
      EXPECT_EQ(RunInChunks(shape, {600}, q, k, v, two, random), whole);
      shape.layout.block_tokens = 32;
      EXPECT_EQ(RunInChunks(shape, {1, 254, 1, 2, 255, 80, 7}, q, k, v, three, random), whole);
      shape.layout.block_tokens = 16;
      EXPECT_EQ(RunInChunks(shape, {513, 1, 1, 1, 84}, q, k, v, two, random), whole);
    }
  }
}

TEST(Attention, BitsDoNotDependOnTheBatch) {
  RandomData random(12);
  ThreadTeam one(1), three(3);
  const Shape shape{{DType::kF16, 1, 64, 32}, 3, 20.0f, 0};
  const int64_t q_width = 3 * 64;
  Pool pool(shape.layout, 128, random);
  std::vector<std::vector<uint32_t>> tables;
  std::vector<KvSequence> queries;
  int64_t rows = 0;
  for (const int tokens : {700, 1, 257, 300, 16}) {
    tables.push_back(pool.Table(tokens));
    const KvSequence written{tables.back().data(), 0, tokens};
    StoreKv(pool.pool(), {&written, 1}, random.Floats(tokens * 64).data(),
            random.Floats(tokens * 64).data(), one);
    const int count = std::min(tokens, tokens % 2 == 0 ? 1 : 15);
    queries.push_back({tables.back().data(), tokens - count, count});
    rows += count;
  }
  const std::vector<float> q = random.Floats(rows * q_width);
  std::vector<float> together;
  Attention(MakeArgs(shape, pool, queries, q, together), three);
  ASSERT_EQ(LargestDifference(together, together), 0);
  int64_t row = 0;
  for (const KvSequence& sequence : queries) {
    const std::vector<float> part(q.begin() + row * q_width,
                                  q.begin() + (row + sequence.num_rows) * q_width);
    for (ThreadTeam* team : {&one, &three}) {
      std::vector<float> alone;
      Attention(MakeArgs(shape, pool, {sequence}, part, alone), *team);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * q_width));
    }
    row += sequence.num_rows;
  }
}

TEST(Attention, PortableKernelsEqualReference) {
  RandomData random(13);
  ThreadTeam team(1);
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0}) {
    const Shape shape{{type, 1, 32, 16}, 2, 7.0f, 270};
    Pool pool(shape.layout, 64, random);
    const std::vector<uint32_t> table = pool.Table(530);
    const std::vector<KvSequence> written = {{table.data(), 0, 530}};
    const std::vector<KvSequence> queries = {{table.data(), 520, 10}};
    StoreKv(pool.pool(), written, random.Floats(530 * 32).data(), random.Floats(530 * 32).data(),
            team);
    const std::vector<float> q = random.Floats(10 * 64);
    std::vector<float> expected;
    const AttentionArgs args = MakeArgs(shape, pool, queries, q, expected);
    reference::Attention(args);
    std::vector<float> states(3 * 20 * 40);
    std::vector<float> scratch(static_cast<size_t>(cpu::kPortableAttention.scratch_floats(20, 32)));
    const cpu::AttendPiece piece{q.data(), 10, 520};
    cpu::AttendTask task{};
    task.pieces = &piece;
    task.num_pieces = 1;
    task.rows = 20;
    task.heads_per_kv = 2;
    task.query_stride = 64;
    task.blocks = table.data();
    task.k = reinterpret_cast<const uint8_t*>(pool.pool().k);
    task.v = reinterpret_cast<const uint8_t*>(pool.pool().v);
    task.block_bytes = shape.layout.BlockBytes();
    task.tile_bytes = shape.layout.TileBytes();
    task.block_tokens = 16;
    task.head_dim = 32;
    task.kind = type == DType::kF32   ? cpu::KvKind::kFloat
                : type == DType::kF16 ? cpu::KvKind::kHalf
                                      : cpu::KvKind::kInt8;
    task.scale = args.scale;
    task.softcap = shape.softcap;
    task.window = shape.window;
    task.first_segment = 0;
    task.last_segment = 3;
    task.states = states.data();
    task.scratch = scratch.data();
    for (const bool merged : {true, false}) {
      task.merged = merged;
      cpu::kPortableAttention.attend(task);
      for (int r = 0; r < 20; ++r) {
        float* const state = states.data() + r * 40;
        for (int s = 1; s < 3 && !merged; ++s) {
          cpu::kPortableAttention.merge(state, state + s * 20 * 40, 32);
        }
        for (int d = 0; d < 32; ++d) {
          ASSERT_NEAR(state[d] / state[33], expected[r * 32 + d], 1e-5);
        }
      }
    }
  }
}

TEST(Attention, PortableStoresEqualThoseInUse) {
  RandomData random(14);
  for (int round = 0; round < 100; ++round) {
    std::vector<float> values = random.Floats(32);
    for (float& value : values) value *= std::pow(10.0f, static_cast<float>(round % 50 - 25));
    std::vector<int8_t> quants(64, 1), expected_quants(64, 1);
    uint16_t scale = 0, expected_scale = 0;
    cpu::kPortableAttention.store_int8(values.data(), 2, expected_quants.data(), &expected_scale);
    cpu::AttentionKernels().store_int8(values.data(), 2, quants.data(), &scale);
    EXPECT_EQ(quants, expected_quants);
    EXPECT_EQ(scale, expected_scale);
    std::vector<uint16_t> halves(64, 1), expected_halves(64, 1);
    cpu::kPortableAttention.store_half(values.data(), 32, 2, expected_halves.data());
    cpu::AttentionKernels().store_half(values.data(), 32, 2, halves.data());
    EXPECT_EQ(halves, expected_halves);
  }
}

// A value beyond halves, or not there yet, of a token that a row does not see is nothing to it.
TEST(Attention, HiddenTokensDoNotMatter) {
  RandomData random(15);
  ThreadTeam team(1);
  for (const DType type : {DType::kF16, DType::kQ8_0}) {
    const Shape shape{{type, 1, 32, 16}, 2, 0.0f, 0};
    std::vector<float> k = random.Floats(20 * 32), v = random.Floats(20 * 32);
    const std::vector<float> q = random.Floats(20 * 64);
    const std::vector<float> calm = RunInChunks(shape, {20}, q, k, v, team, random);
    for (int i = 19 * 32; i < 20 * 32; ++i) k[i] = v[i] = 1e38f;
    const std::vector<float> wild = RunInChunks(shape, {20}, q, k, v, team, random);
    for (int i = 0; i < 19 * 64; ++i) ASSERT_EQ(calm[i], wild[i]);
  }
}

TEST(KvBlockShape, RefusesWhatTheKernelsCannotRead) {
  EXPECT_TRUE((KvBlockShape{DType::kF16, 1, 64, 16}.Valid()));
  EXPECT_TRUE((KvBlockShape{DType::kQ8_0, 1, 64, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kQ8_0, 1, 80, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kQ4_0, 1, 64, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 0, 64, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 1, 60, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 1, 1024, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 1, 64, 24}.Valid()));
}

}  // namespace
}  // namespace hexad
