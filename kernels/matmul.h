#pragma once

// y = x W^T for weights W [out, in], the product of every linear layer.
//
// Numerics. Weights are used at their exact dequantised value; activations and sums are fp32. The
// order over k is fixed: within a scale group (16 or 32 consecutive k, by format) a chain of FMAs
// in ascending k, and the group sums are added, times their scale, in ascending order. One order
// for every path: the bits of an output row depend on that row of x and on W alone, not on how many
// tokens or which others share the call, nor on tiles or threads. Another arithmetic (int8
// activations) is another packed layout and another KernelSetName, not another interface.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/buffer.h"
#include "kernels/thread_team.h"
#include "kernels/types.h"

namespace hexad {

// Weights repacked once into panels of output rows, still quantised: bytes() is about the size in
// the file (5- and 6-bit formats take 8 bits a value). Immutable after construction; any number of
// threads may use it.
class PackedMatrix final {
 public:
  PackedMatrix() = default;  // empty: out() == 0

  // rows: out rows of RowBytes(type, in) bytes, one after another (a GGUF tensor's data with
  // dims {in, out}); not needed afterwards. REQUIRES: in > 0, a multiple of
  // Info(type).block_values.
  static PackedMatrix Pack(DType type, const void* rows, int64_t out, int64_t in, ThreadTeam& team);

  PackedMatrix(PackedMatrix&&) noexcept = default;
  PackedMatrix& operator=(PackedMatrix&&) noexcept = default;

  DType type() const { return type_; }
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  size_t bytes() const { return data_.size(); }
  const std::byte* data() const { return data_.data(); }  // layout: kernels/cpu/packed_layout.h

 private:
  DType type_ = DType::kF32;
  int64_t out_ = 0;
  int64_t in_ = 0;
  HugeBuffer data_;
};

// y: [tokens, weights->out()], must not overlap x.
struct MatMulOutput {
  const PackedMatrix* weights;
  float* y;
};

// x: [tokens, in]; every output's weights have the same `in`. Several matrices on one x (q, k, v;
// gate, up) share one hand-over to the team; the bits are those of separate calls.
void MatMul(const float* x, int64_t tokens, std::span<const MatMulOutput> outputs,
            ThreadTeam& team);

inline void MatMul(const float* x, int64_t tokens, const PackedMatrix& weights, float* y,
                   ThreadTeam& team) {
  const MatMulOutput output{&weights, y};
  MatMul(x, tokens, std::span<const MatMulOutput>(&output, 1), team);
}

// The kernels chosen for this CPU at start, as part of the numerics id: "avx2-f32-1" and the like.
// Equal names promise equal bits for all ops of kernels/.
std::string_view KernelSetName();

}  // namespace hexad
