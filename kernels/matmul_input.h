#pragma once

// The rows that products multiply, in the forms that the products' weights take: int8 blocks with
// their scales and sums, fp32, or both. Whoever computes a row puts it here while it is in the
// cache (a norm, a gate, attention), so that no product has to walk its input first, and several
// products on the same rows share them.

#include <cstdint>
#include <span>

#include "kernels/aligned.h"
#include "kernels/thread_team.h"

namespace hexad {

class PackedMatrix;

class MatMulInput final {
 public:
  // Room for `rows` rows in all forms that `weights`, which have one `in`, take. What it held is
  // gone; memory grows and never shrinks. Not thread-safe.
  void Reset(int64_t rows, std::span<const PackedMatrix* const> weights);

  int64_t rows() const { return rows_; }
  int64_t dim() const { return dim_; }

  // Values [first_value, first_value + width) of rows [first_row, first_row + count), from x:
  // [count, width]. REQUIRES: first_value is a multiple of 32, and so is width unless it reaches
  // dim. Threads may put different rows, or different values of the same rows, at the same time.
  void Put(const float* x, int64_t first_row, int64_t count, int64_t first_value, int64_t width);
  void PutRow(const float* x, int64_t row) { Put(x, row, 1, 0, dim_); }
  // All rows, from x: [rows, dim].
  void PutAll(const float* x, ThreadTeam& team);

  // Of the kernels, see kernels/cpu/kernel_set.h; null where no weights asked for them.
  struct Floats {
    const float* x = nullptr;        // [rows, dim]
    const float* chunks = nullptr;   // [dim / 256 rounded up, rows, 256]
    const float* shifted = nullptr;  // [rows, dim]
    const float* sums16 = nullptr;   // [rows, dim / 16]
    const float* sums32 = nullptr;   // [rows, dim / 32]
  };
  struct Quantised {
    const int8_t* quants = nullptr;    // [dim / 32, rows, 32]
    const float* scales = nullptr;     // [dim / 32, rows]
    const float* sums = nullptr;       // [dim / 32, rows]
    const int16_t* halves = nullptr;   // [dim / 32, rows, 2]
    const int16_t* lanes16 = nullptr;  // [dim / 16, rows, 2]
    const int16_t* lanes32 = nullptr;  // [dim / 32, rows, 2]
  };
  Floats floats() const;
  Quantised quantised() const;

 private:
  struct Forms {
    bool x, chunks, shifted, sums16, sums32;
    bool int8, int8_sums, int8_halves, int8_lanes16, int8_lanes32;
  };
  void PutChunks(const float* x, int64_t row, int64_t first_value, int64_t width);

  Forms forms_{};
  int64_t rows_ = 0;
  int64_t dim_ = 0;
  AlignedVector<float> x_, chunks_, shifted_, sums16_, sums32_;
  AlignedVector<int8_t> quants_;
  AlignedVector<float> scales_, int8_sums_;
  AlignedVector<int16_t> int8_halves_, int8_lanes16_, int8_lanes32_;
};

}  // namespace hexad
