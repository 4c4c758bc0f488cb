#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/cpu/kernel_set.h"
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
  const int dims[] = {8, 24, 64, 80, 128, 256};
  const int blocks[] = {16, 32, 64};
  shape.layout.type = random.Integer(0, 1) == 0 ? DType::kF32 : DType::kF16;
  shape.layout.kv_heads = static_cast<int>(random.Integer(1, 3));
  shape.layout.head_dim = dims[random.Integer(0, 5)];
  shape.layout.block_tokens = blocks[random.Integer(0, 2)];
  shape.heads = shape.layout.kv_heads * static_cast<int>(random.Integer(1, 9));
  shape.softcap = random.Integer(0, 2) == 0 ? 5.0f : 0.0f;
  const int windows[] = {0, 0, 1, 7, 100, 256, 300};
  shape.window = windows[random.Integer(0, 6)];
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

TEST(Attention, EqualsReferenceOnRandomShapes) {
  RandomData random(2024);
  ThreadTeam team(2);
  for (int round = 0; round < 40; ++round) {
    const Shape shape = RandomShape(random);
    Pool pool(shape.layout, 200, random);
    const int64_t width = int64_t{shape.layout.kv_heads} * shape.layout.head_dim;
    std::vector<std::vector<uint32_t>> tables;
    std::vector<KvSequence> written, queries;
    int64_t kv_rows = 0, q_rows = 0;
    const int64_t count = random.Integer(1, 3);
    for (int64_t s = 0; s < count; ++s) {
      const int64_t tokens = random.Integer(1, round % 8 == 0 ? 800 : 300);
      const int64_t rows = std::min(tokens, random.Integer(1, round % 2 == 0 ? 1 : 20));
      tables.push_back(pool.Table(tokens));
      written.push_back({tables.back().data(), 0, static_cast<int32_t>(tokens)});
      queries.push_back({tables.back().data(), tokens - rows, static_cast<int32_t>(rows)});
      kv_rows += tokens;
      q_rows += rows;
    }
    const std::vector<float> k = random.Floats(kv_rows * width);
    const std::vector<float> v = random.Floats(kv_rows * width);
    StoreKv(pool.pool(), written, k.data(), v.data(), team);
    const std::vector<float> q = random.Floats(q_rows * shape.heads * shape.layout.head_dim);
    std::vector<float> actual, expected;
    Attention(MakeArgs(shape, pool, queries, q, actual), team);
    reference::Attention(MakeArgs(shape, pool, queries, q, expected));
    ASSERT_LT(LargestDifference(actual, expected), 1e-4)
        << "round " << round << " heads " << shape.heads << "/" << shape.layout.kv_heads << " dim "
        << shape.layout.head_dim << " window " << shape.window << " softcap " << shape.softcap;
  }
}

TEST(StoreKv, EqualsReference) {
  RandomData random(7);
  ThreadTeam team(2);
  for (const DType type : {DType::kF32, DType::kF16}) {
    const KvBlockShape layout{type, 2, 40, 32};
    Pool pool(layout, 8, random);
    const std::vector<uint32_t> table = pool.Table(100);
    const KvSequence sequence{table.data(), 29, 45};
    const std::vector<float> k = random.Floats(45 * 80), v = random.Floats(45 * 80);
    StoreKv(pool.pool(), {&sequence, 1}, k.data(), v.data(), team);
    for (int64_t row = 0; row < 45; ++row) {
      const uint32_t block = table[(29 + row) / 32];
      const int token = static_cast<int>((29 + row) % 32);
      for (int i = 0; i < 80; ++i) {
        float expected_k = k[row * 80 + i], expected_v = v[row * 80 + i];
        if (type == DType::kF16) {
          expected_k = HalfToFloat(FloatToHalf(expected_k));
          expected_v = HalfToFloat(FloatToHalf(expected_v));
        }
        ASSERT_EQ(reference::LoadK(pool.pool(), block, token, i / 40, i % 40), expected_k);
        ASSERT_EQ(reference::LoadV(pool.pool(), block, token, i / 40, i % 40), expected_v);
      }
    }
    EXPECT_TRUE(std::isnan(reference::LoadK(pool.pool(), table[0], 28, 0, 0)));
    EXPECT_TRUE(std::isnan(reference::LoadV(pool.pool(), table[2], 10, 1, 39)));
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
    for (const DType type : {DType::kF32, DType::kF16}) {
      Shape shape{{type, 2, 24, 16}, 6, 0.0f, window};
      const std::vector<float> q = random.Floats(tokens * 6 * 24);
      const std::vector<float> k = random.Floats(tokens * 48), v = random.Floats(tokens * 48);
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
  const Shape shape{{DType::kF16, 1, 16, 16}, 2, 7.0f, 270};
  Pool pool(shape.layout, 64, random);
  const std::vector<uint32_t> table = pool.Table(530);
  const std::vector<KvSequence> written = {{table.data(), 0, 530}};
  const std::vector<KvSequence> queries = {{table.data(), 520, 10}};
  StoreKv(pool.pool(), written, random.Floats(530 * 16).data(), random.Floats(530 * 16).data(),
          team);
  const std::vector<float> q = random.Floats(10 * 32);
  std::vector<float> expected;
  reference::Attention(MakeArgs(shape, pool, queries, q, expected));
  std::vector<float> scratch(4096), state(20 * 24, 0.0f);
  for (int r = 0; r < 20; ++r) state[r * 24 + 16] = -INFINITY;
  cpu::AttendTask task{};
  task.q = q.data();
  task.query_stride = 32;
  task.queries = 10;
  task.heads_per_kv = 2;
  task.first_position = 520;
  task.blocks = table.data();
  task.k = reinterpret_cast<const uint8_t*>(pool.pool().k);
  task.v = reinterpret_cast<const uint8_t*>(pool.pool().v);
  task.block_bytes = shape.layout.BlockBytes();
  task.block_tokens = 16;
  task.head_dim = 16;
  task.half = true;
  task.scale = 0.25f;
  task.softcap = shape.softcap;
  task.window = shape.window;
  task.first_segment = 0;
  task.last_segment = 3;
  task.state = state.data();
  task.scratch = scratch.data();
  cpu::kPortableKernels.attend(task);
  for (int r = 0; r < 20; ++r) {
    for (int d = 0; d < 16; ++d) {
      ASSERT_NEAR(state[r * 24 + d] / state[r * 24 + 17], expected[r * 16 + d], 1e-5);
    }
  }
}

TEST(KvBlockShape, RefusesWhatTheKernelsCannotRead) {
  EXPECT_TRUE((KvBlockShape{DType::kF16, 1, 64, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kQ8_0, 1, 64, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 0, 64, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 1, 60, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 1, 1024, 16}.Valid()));
  EXPECT_FALSE((KvBlockShape{DType::kF16, 1, 64, 24}.Valid()));
}

}  // namespace
}  // namespace hexad
