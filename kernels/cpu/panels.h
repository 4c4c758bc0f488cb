#pragma once

// Products a few panels at a time, for whoever divides them among threads and goes on with the
// outputs while they are in the cache.

#include <cstdint>

#include "kernels/matmul.h"
#include "kernels/matmul_input.h"

namespace hexad::cpu {

int64_t PanelCount(const PackedMatrix& matrix);

// How many panels of a matrix (of `matrices` that go together) make a piece for one thread: whole
// groups that the kernels read side by side, small enough that the last pieces end at about the
// same time.
int64_t PanelsPerPiece(const PackedMatrix& matrix, int64_t matrices, const ThreadTeam& team);

// Panels first..last-1 times all rows of x. y: [rows, y_stride], from the first panel's first
// output on.
void ComputePanels(const MatMulInput& x, const PackedMatrix& weights, int64_t first, int64_t last,
                   float* y, int64_t y_stride);

}  // namespace hexad::cpu
