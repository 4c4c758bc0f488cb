#pragma once

// What exists once for every CPU level of attention, as kernel_set.h has it for the other ops.
//
// Included by code that is compiled for newer CPUs: no inline functions, no library headers.

#include <stdint.h>

namespace hexad::cpu {

enum class KvKind : uint8_t { kFloat, kHalf, kInt8 };

// Queries of consecutive positions of one sequence. A row is a query and one of its heads.
struct AttendPiece {
  const float* q;  // of its first row; heads of a query follow each other
  int32_t queries;
  int64_t first_position;
};

// The rows of one KV head: those of the first piece, then of the second..., each query by query
// and head by head. With several pieces, all rows see all of the segments.
struct AttendTask {
  const AttendPiece* pieces;
  int32_t num_pieces;
  int32_t rows;
  int32_t heads_per_kv;
  int64_t query_stride;  // floats from a query's q to the next one's
  const uint32_t* blocks;
  const uint8_t* k;  // of the KV head in block 0
  const uint8_t* v;
  int64_t block_bytes;
  int64_t tile_bytes;
  int32_t block_tokens;
  int32_t head_dim;
  KvKind kind;
  float scale;
  float softcap;
  int32_t window;
  int64_t first_segment;  // inclusive
  int64_t last_segment;   // exclusive
  // Overwritten: acc, max, sum of each row in head_dim + 8 floats, merged over the segments to
  // [rows, ...], or else [segments, rows, ...]. A row that sees nothing has a max of -infinity.
  bool merged;
  float* states;
  float* scratch;  // 64-byte aligned; as many floats as scratch_floats says
};

struct AttentionKernelSet {
  const char* name;
  int64_t (*scratch_floats)(int32_t rows, int32_t head_dim);
  void (*attend)(const AttendTask& task);
  // state and partial: [head_dim + 8]. The state takes the partial in; an empty one becomes it.
  void (*merge)(float* state, const float* partial, int32_t head_dim);
  // out[i * stride] = half of values[i]; count a multiple of 8. See StoreKv for both.
  void (*store_half)(const float* values, int32_t count, int32_t stride, uint16_t* out);
  // 32 values: quants[i * stride], and the scale.
  void (*store_int8)(const float* values, int32_t stride, int8_t* quants, uint16_t* scale);
};

extern const AttentionKernelSet kPortableAttention;

// The best set for this CPU: the same one at every call.
const AttentionKernelSet& AttentionKernels();

void Avx2Attend(const AttendTask& task);
int64_t Avx2AttendScratch(int32_t rows, int32_t head_dim);
void Avx2Merge(float* state, const float* partial, int32_t head_dim);
void Avx2StoreHalf(const float* values, int32_t count, int32_t stride, uint16_t* out);
void Avx2StoreInt8(const float* values, int32_t stride, int8_t* quants, uint16_t* scale);

}  // namespace hexad::cpu
