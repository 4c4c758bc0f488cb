#pragma once

// Every op in the plainest loops, in double, for tests to compare the fast kernels with and for the
// reference executor. Arguments are those of the ops in kernels/*.h, less the thread team.

#include <cstdint>
#include <span>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/types.h"

namespace hexad::reference {

// rows: the matrix [out, in] as in the file. y: [tokens, out].
void MatMul(const float* x, int64_t tokens, DType type, const void* rows, int64_t out, int64_t in,
            float* y);

void StoreKv(const KvPool& pool, std::span<const KvSequence> sequences, const float* k,
             const float* v);
// One key or value of the pool, converted to fp32; dimension < head_dim.
float LoadK(const KvPool& pool, uint32_t block, int token, int kv_head, int dimension);
float LoadV(const KvPool& pool, uint32_t block, int token, int kv_head, int dimension);
void Attention(const AttentionArgs& args);

void RmsNorm(const float* x, const float* weight, float weight_offset, float epsilon, int64_t rows,
             int64_t dim, float* out);
void AddInPlace(float* x, const float* y, int64_t values);
void AddBias(float* x, const float* bias, int64_t rows, int64_t dim);
void Scale(float* x, float factor, int64_t values);
void Softcap(float* x, float cap, int64_t values);
void SiluGate(const float* gate, const float* up, int64_t values, float* out);
void GeluGate(const float* gate, const float* up, int64_t values, float* out);
// Angles are computed here, not taken from a table. frequencies: [pairs].
void Rope(RopeKind kind, const int64_t* positions, const float* frequencies, int64_t pairs,
          float magnitude, int64_t rows, int64_t heads, int64_t head_dim, float* x);

}  // namespace hexad::reference
