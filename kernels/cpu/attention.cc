#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cpu/kernel_set.h"

namespace hexad {
namespace {

// Rows of q (queries times heads of one KV head) that share one pass over the keys.
constexpr int kTaskRows = 32;
// A step with few tasks also divides them by segment; then this many floats may hold the partials.
constexpr int64_t kMaxPartialFloats = int64_t{4} << 20;

// Some queries of a sequence for one KV head.
struct Piece {
  const KvSequence* sequence;
  int64_t row;  // of the first query in q
  int64_t first_position;
  int32_t queries;
  int32_t kv_head;
  int64_t first_segment;
  int64_t last_segment;
  int64_t first_partial;  // when divided: index of the partial of its first row and segment
};

int64_t StateFloats(const KvBlockShape& layout) { return layout.head_dim + 8; }

std::vector<Piece> Divide(const AttentionArgs& args) {
  const int heads_per_kv = args.heads / args.pool.layout.kv_heads;
  const int queries = std::max(1, kTaskRows / heads_per_kv);
  std::vector<Piece> pieces;
  int64_t row = 0;
  for (const KvSequence& sequence : args.sequences) {
    for (int32_t begin = 0; begin < sequence.num_rows; begin += queries) {
      Piece piece{};
      piece.sequence = &sequence;
      piece.row = row + begin;
      piece.first_position = sequence.first_position + begin;
      piece.queries = std::min(queries, sequence.num_rows - begin);
      const int64_t last = piece.first_position + piece.queries - 1;
      const int64_t first =
          args.window > 0 ? std::max<int64_t>(0, piece.first_position - args.window + 1) : 0;
      piece.first_segment = first / kAttentionSegment;
      piece.last_segment = last / kAttentionSegment + 1;
      for (int32_t head = 0; head < args.pool.layout.kv_heads; ++head) {
        piece.kv_head = head;
        pieces.push_back(piece);
      }
    }
    row += sequence.num_rows;
  }
  return pieces;
}

cpu::AttendTask MakeTask(const AttentionArgs& args, const Piece& piece) {
  const KvBlockShape& layout = args.pool.layout;
  cpu::AttendTask task{};
  task.heads_per_kv = args.heads / layout.kv_heads;
  task.query_stride = int64_t{args.heads} * layout.head_dim;
  task.q = args.q + piece.row * task.query_stride +
           int64_t{piece.kv_head} * task.heads_per_kv * layout.head_dim;
  task.queries = piece.queries;
  task.first_position = piece.first_position;
  task.blocks = piece.sequence->blocks;
  const int64_t head_offset =
      piece.kv_head * RowBytes(layout.type, int64_t{layout.block_tokens} * layout.head_dim);
  task.k = reinterpret_cast<const uint8_t*>(args.pool.k) + head_offset;
  task.v = reinterpret_cast<const uint8_t*>(args.pool.v) + head_offset;
  task.block_bytes = layout.BlockBytes();
  task.block_tokens = layout.block_tokens;
  task.head_dim = layout.head_dim;
  task.half = layout.type == DType::kF16;
  task.scale = args.scale;
  task.softcap = args.softcap;
  task.window = args.window;
  task.first_segment = piece.first_segment;
  task.last_segment = piece.last_segment;
  return task;
}

void ClearStates(float* states, int64_t count, int64_t head_dim) {
  for (int64_t i = 0; i < count; ++i, states += head_dim + 8) {
    std::fill(states, states + head_dim, 0.0f);
    states[head_dim] = -INFINITY;
    states[head_dim + 1] = 0.0f;
  }
}

float* Reserve(std::vector<float>& storage, int64_t floats) {
  if (storage.size() < static_cast<size_t>(floats)) storage.resize(static_cast<size_t>(floats));
  return storage.data();
}

int64_t ScratchFloats(int64_t rows, const KvBlockShape& layout) {
  return rows * (kAttentionSegment + StateFloats(layout)) + int64_t{layout.head_dim} * kKvTile;
}

// acc / sum of every row, to its place in out.
void WriteOut(const AttentionArgs& args, const Piece& piece, const float* states) {
  const KvBlockShape& layout = args.pool.layout;
  const int heads_per_kv = args.heads / layout.kv_heads;
  for (int64_t r = 0; r < int64_t{piece.queries} * heads_per_kv; ++r) {
    const float* state = states + r * StateFloats(layout);
    const int64_t head = int64_t{piece.kv_head} * heads_per_kv + r % heads_per_kv;
    float* out = args.out + ((piece.row + r / heads_per_kv) * args.heads + head) * layout.head_dim;
    const float sum = state[layout.head_dim + 1];
    for (int d = 0; d < layout.head_dim; ++d) out[d] = state[d] / sum;
  }
}

void AttendWhole(const AttentionArgs& args, const std::vector<Piece>& pieces, ThreadTeam& team) {
  const KvBlockShape& layout = args.pool.layout;
  team.ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
    thread_local std::vector<float> storage;
    for (int64_t i = begin; i < end; ++i) {
      cpu::AttendTask task = MakeTask(args, pieces[i]);
      const int64_t rows = int64_t{task.queries} * task.heads_per_kv;
      const int64_t state_floats = rows * StateFloats(layout);
      task.state = Reserve(storage, state_floats + ScratchFloats(rows, layout));
      task.scratch = task.state + state_floats;
      ClearStates(task.state, rows, layout.head_dim);
      cpu::Kernels().attend(task);
      WriteOut(args, pieces[i], task.state);
    }
  });
}

// Every segment of every piece on its own, then the same merges in the same order.
void AttendDivided(const AttentionArgs& args, const std::vector<Piece>& pieces,
                   int64_t partial_count, ThreadTeam& team) {
  const KvBlockShape& layout = args.pool.layout;
  const int heads_per_kv = args.heads / layout.kv_heads;
  thread_local std::vector<float> storage;
  float* const partials = Reserve(storage, partial_count * StateFloats(layout));
  std::vector<std::pair<int32_t, int64_t>> items;  // piece, segment
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (int64_t s = pieces[i].first_segment; s < pieces[i].last_segment; ++s) {
      items.emplace_back(static_cast<int32_t>(i), s);
    }
  }
  const auto states_of = [&](const Piece& piece, int64_t segment) {
    const int64_t rows = int64_t{piece.queries} * heads_per_kv;
    return partials +
           (piece.first_partial + (segment - piece.first_segment) * rows) * StateFloats(layout);
  };
  team.ParallelFor(static_cast<int64_t>(items.size()), 1, [&](int64_t begin, int64_t end, int) {
    thread_local std::vector<float> scratch;
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[items[i].first];
      cpu::AttendTask task = MakeTask(args, piece);
      const int64_t rows = int64_t{task.queries} * heads_per_kv;
      task.first_segment = items[i].second;
      task.last_segment = task.first_segment + 1;
      task.state = states_of(piece, task.first_segment);
      task.scratch = Reserve(scratch, ScratchFloats(rows, layout));
      ClearStates(task.state, rows, layout.head_dim);
      cpu::Kernels().attend(task);
    }
  });
  team.ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t, int) {
    const Piece& piece = pieces[begin];
    float* const total = states_of(piece, piece.first_segment);
    for (int64_t s = piece.first_segment + 1; s < piece.last_segment; ++s) {
      for (int64_t r = 0; r < int64_t{piece.queries} * heads_per_kv; ++r) {
        cpu::Kernels().merge(total + r * StateFloats(layout),
                             states_of(piece, s) + r * StateFloats(layout), layout.head_dim);
      }
    }
    WriteOut(args, piece, total);
  });
}

void StoreRow(const KvPool& pool, uint32_t block, int token, const float* k, const float* v) {
  const KvBlockShape& layout = pool.layout;
  const int64_t head_values = int64_t{layout.block_tokens} * layout.head_dim;
  const int64_t tile = token / kKvTile * int64_t{layout.head_dim} * kKvTile + token % kKvTile;
  for (int head = 0; head < layout.kv_heads; ++head, k += layout.head_dim, v += layout.head_dim) {
    const int64_t base = int64_t{block} * layout.kv_heads * head_values + head * head_values;
    const int64_t v_index = base + int64_t{token} * layout.head_dim;
    if (layout.type == DType::kF16) {
      cpu::Kernels().store_half(k, layout.head_dim, kKvTile,
                                reinterpret_cast<uint16_t*>(pool.k) + base + tile);
      cpu::Kernels().store_half(v, layout.head_dim, 1,
                                reinterpret_cast<uint16_t*>(pool.v) + v_index);
      continue;
    }
    float* const k_out = reinterpret_cast<float*>(pool.k) + base + tile;
    for (int d = 0; d < layout.head_dim; ++d) k_out[d * kKvTile] = k[d];
    std::memcpy(reinterpret_cast<float*>(pool.v) + v_index, v,
                sizeof(float) * static_cast<size_t>(layout.head_dim));
  }
}

}  // namespace

bool KvBlockShape::Valid() const {
  return (type == DType::kF32 || type == DType::kF16) && kv_heads > 0 && head_dim > 0 &&
         head_dim <= 512 && head_dim % 8 == 0 && block_tokens > 0 && block_tokens % kKvTile == 0;
}

void StoreKvRow(const KvPool& pool, const uint32_t* blocks, int64_t position, const float* k,
                const float* v) {
  const int32_t block_tokens = pool.layout.block_tokens;
  StoreRow(pool, blocks[position / block_tokens], static_cast<int>(position % block_tokens), k, v);
}

void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
             const float* v, ThreadTeam& team) {
  const KvBlockShape& layout = pool.layout;
  const int64_t width = int64_t{layout.kv_heads} * layout.head_dim;
  for (const KvSequence& sequence : sequences) {
    const int64_t grain = std::max<int64_t>(1, 16384 / width);
    team.ParallelFor(sequence.num_rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t position = sequence.first_position + i;
        StoreRow(pool, sequence.blocks[position / layout.block_tokens],
                 static_cast<int>(position % layout.block_tokens), k + i * width, v + i * width);
      }
    });
    k += sequence.num_rows * width;
    v += sequence.num_rows * width;
  }
}

void Attention(const AttentionArgs& args, ThreadTeam& team) {
  std::vector<Piece> pieces = Divide(args);
  const int64_t heads_per_kv = args.heads / args.pool.layout.kv_heads;
  int64_t partials = 0, segments = 0;
  for (Piece& piece : pieces) {
    piece.first_partial = partials;
    partials += piece.queries * heads_per_kv * (piece.last_segment - piece.first_segment);
    segments += piece.last_segment - piece.first_segment;
  }
  const bool few = static_cast<int64_t>(pieces.size()) < int64_t{4} * team.threads();
  const bool divide = team.threads() > 1 && few && segments > static_cast<int64_t>(pieces.size()) &&
                      partials * StateFloats(args.pool.layout) <= kMaxPartialFloats;
  if (divide) {
    AttendDivided(args, pieces, partials, team);
  } else {
    AttendWhole(args, pieces, team);
  }
}

}  // namespace hexad
