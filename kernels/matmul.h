#pragma once

// y = x W^T for weights W [out, in], the product of every linear layer, in one of two arithmetics,
// chosen when the weights are packed.
//
// Numerics, kF32. Weights are used at their exact dequantised value; activations and sums are fp32.
// The order over k is fixed: within a scale group (16 or 32 consecutive k, by format; 256 for F32,
// F16 and BF16) a chain of FMAs in ascending k, and the group sums are added, times their scale, in
// ascending order.
//
// Numerics, kInt8. Each block of 32 consecutive values of a row of x becomes int8 times a scale of
// max |x| / 127 (round to nearest even). The integer dot of a block, of 256-value formats with its
// groups' multipliers in it, is exact; the blocks are added, times both scales, in ascending order
// by FMAs in fp32: in 256-value formats 256 values at a time, whose sum then is multiplied with
// their common scale. The mins are taken off likewise. Hence, with a 32-block's m = max |x| and
// S = sum of |w| in it,
//     |y - x W^T| <= sum over blocks of m S / 254
// beside what fp32 rounding adds, about in / 32 units in the last place of the sum of |w x|. A
// block that lies below 2^-100 counts as zero; one that holds an infinity or NaN makes the row NaN.
// With 256-value formats, values of x above 2^100 may overflow on the way.
//
// In both, one order for every path: the bits of an output row depend on that row of x and on W
// alone, not on how many tokens or which others share the call, nor on tiles or threads.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/buffer.h"
#include "kernels/matmul_input.h"
#include "kernels/thread_team.h"
#include "kernels/types.h"

namespace hexad {

// Weights repacked once into panels of output rows, still quantised: bytes() is about the size in
// the file (for kF32, 5- and 6-bit formats take 8 bits a value). Immutable after construction; any
// number of threads may use it.
class PackedMatrix final {
 public:
  PackedMatrix() = default;  // empty: out() == 0

  // rows: out rows of RowBytes(type, in) bytes, one after another (a GGUF tensor's data with
  // dims {in, out}); not needed afterwards. REQUIRES: in > 0, a multiple of
  // Info(type).block_values.
  static PackedMatrix Pack(DType type, const void* rows, int64_t out, int64_t in, ThreadTeam& team,
                           Activations activations = Activations::kF32);

  PackedMatrix(PackedMatrix&&) noexcept = default;
  PackedMatrix& operator=(PackedMatrix&&) noexcept = default;

  DType type() const { return type_; }
  Activations activations() const { return activations_; }  // as used, so kF32 for float types
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  size_t bytes() const { return data_.size(); }

  // out: [in()], with the bits that DequantizeRow gives for that row of the file, whatever the
  // activations: a tied embedding need not exist twice.
  void Row(int64_t row, float* out) const;
  const std::byte* data() const { return data_.data(); }  // layout: kernels/cpu/packed_layout.h

 private:
  DType type_ = DType::kF32;
  Activations activations_ = Activations::kF32;
  int64_t out_ = 0;
  int64_t in_ = 0;
  HugeBuffer data_;
};

// y: [rows, weights->out()].
struct MatMulOutput {
  const PackedMatrix* weights;
  float* y;
};

// y = x W^T for all rows of x, which was Reset for (at least) these weights. Several matrices on
// one x (q, k, v) share one hand-over to the team and may be packed for different activations; the
// bits are those of separate calls.
void MatMul(const MatMulInput& x, std::span<const MatMulOutput> outputs, ThreadTeam& team);

// The same on plain rows. x: [rows, in], must not overlap any y.
void MatMul(const float* x, int64_t rows, std::span<const MatMulOutput> outputs, ThreadTeam& team);

inline void MatMul(const float* x, int64_t rows, const PackedMatrix& weights, float* y,
                   ThreadTeam& team) {
  const MatMulOutput output{&weights, y};
  MatMul(x, rows, std::span<const MatMulOutput>(&output, 1), team);
}

enum class Gate : uint8_t { kSilu, kGelu };

// out = act(x W_gate^T) * (x W_up^T), both matrices with one shape: the gated half of a
// feed-forward layer. Bits as of MatMul, then SiluGate or GeluGate, then MatMulInput::Put; a gate
// is computed and taken over piece by piece, so that the products' outputs are never in memory.
// out: Reset for the same rows and weights whose `in` is gate.out(); not x.
void GatedMatMul(const MatMulInput& x, const PackedMatrix& gate, const PackedMatrix& up, Gate kind,
                 MatMulInput& out, ThreadTeam& team);

// The vocabulary product. Every row gets the id of its greatest logit: the lowest of several, a NaN
// never, 0 where no logit is above minus infinity. Only rows that have a place for them get their
// logits written; the bits are those of MatMul, then Softcap with `cap` where cap > 0.
struct LogitRow {
  float* logits = nullptr;  // [vocabulary], or null
  int32_t best = 0;         // out
};
void MatMulLogits(const MatMulInput& x, const PackedMatrix& head, float cap,
                  std::span<LogitRow> rows, ThreadTeam& team);

// The kernels chosen for this CPU at start, as part of the numerics id: "avx2-f32-2", "avx2-i8-3"
// and the like. Equal names promise equal bits for all ops of kernels/.
std::string_view KernelSetName(Activations activations = Activations::kF32);

}  // namespace hexad
