#include "kernels/matmul_input.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/pack.h"
#include "kernels/matmul.h"

namespace hexad {
namespace {

template <typename T>
void Grow(AlignedVector<T>& storage, bool wanted, int64_t count) {
  if (!wanted || storage.size() >= static_cast<size_t>(count)) return;
  storage.clear();  // nothing to copy
  storage.resize(static_cast<size_t>(count));
}

// data + offset, or nullptr.
template <typename T>
T* At(bool wanted, AlignedVector<T>& storage, int64_t offset) {
  return wanted ? storage.data() + offset : nullptr;
}

template <typename T>
const T* DataOf(bool wanted, const AlignedVector<T>& storage) {
  return wanted ? storage.data() : nullptr;
}

}  // namespace

void MatMulInput::Reset(int64_t rows, std::span<const PackedMatrix* const> weights) {
  forms_ = {};
  rows_ = rows;
  dim_ = weights.front()->in();
  for (const PackedMatrix* matrix : weights) {
    assert(matrix->in() == dim_);
    const cpu::PackedFormat format = cpu::FormatOf(matrix->type(), matrix->activations());
    if (matrix->activations() == Activations::kInt8) {
      forms_.int8 = true;
      const bool joined = format.kind == cpu::WeightKind::kQuadU2;
      forms_.int8_sums |= format.has_min && !joined;
      forms_.int8_halves |= joined;
      forms_.int8_lanes16 |= format.bias != 0 && format.group == 16;
      forms_.int8_lanes32 |= format.bias != 0 && format.group == 32;
      continue;
    }
    if (format.kind <= cpu::WeightKind::kBF16) {
      forms_.chunks = true;
      continue;
    }
    const bool shifted = format.kind == cpu::WeightKind::kU4;
    const bool sums = format.has_min || format.bias != 0;
    forms_.shifted |= shifted;
    forms_.x |= !shifted;
    forms_.sums16 |= sums && format.group == 16;
    forms_.sums32 |= sums && format.group == 32;
  }
  Grow(x_, forms_.x, rows * dim_);
  Grow(chunks_, forms_.chunks,
       (dim_ + cpu::kFloatChain - 1) / cpu::kFloatChain * rows * cpu::kFloatChain);
  Grow(shifted_, forms_.shifted, rows * dim_);
  Grow(sums16_, forms_.sums16, rows * (dim_ / 16));
  Grow(sums32_, forms_.sums32, rows * (dim_ / 32));
  Grow(quants_, forms_.int8, rows * dim_);
  Grow(scales_, forms_.int8, rows * (dim_ / 32));
  Grow(int8_sums_, forms_.int8_sums, rows * (dim_ / 32));
  Grow(int8_halves_, forms_.int8_halves, rows * (dim_ / 32) * 2);
  Grow(int8_lanes16_, forms_.int8_lanes16, rows * (dim_ / 16) * 2);
  Grow(int8_lanes32_, forms_.int8_lanes32, rows * (dim_ / 32) * 2);
}

void MatMulInput::Put(const float* x, int64_t first_row, int64_t count, int64_t first_value,
                      int64_t width) {
  assert(first_row >= 0 && first_row + count <= rows_ && first_value + width <= dim_);
  assert(first_value % 32 == 0 && (width % 32 == 0 || first_value + width == dim_));
  if (forms_.int8) {
    const int64_t block = first_value / 32 * rows_ + first_row;
    cpu::QuantizeTask task{};
    task.x = x;
    task.tokens = rows_;
    task.in = width;
    task.last_token = count;
    task.quants = quants_.data() + block * 32;
    task.scales = scales_.data() + block;
    task.sums = At(forms_.int8_sums, int8_sums_, block);
    task.halves = At(forms_.int8_halves, int8_halves_, 2 * block);
    const int64_t half_block = first_value / 16 * rows_ + first_row;
    task.lanes16 = At(forms_.int8_lanes16, int8_lanes16_, 2 * half_block);
    task.lanes32 = At(forms_.int8_lanes32, int8_lanes32_, 2 * block);
    cpu::Kernels().quantize(task);
  }
  if (forms_.chunks) {
    for (int64_t i = 0; i < count; ++i) PutChunks(x + i * width, first_row + i, first_value, width);
  }
  if (!forms_.x && !forms_.shifted && !forms_.sums16 && !forms_.sums32) return;
  for (int64_t i = 0; i < count; ++i, x += width) {
    const int64_t row = first_row + i;
    const int64_t at = row * dim_ + first_value;
    if (forms_.x) std::memcpy(x_.data() + at, x, sizeof(float) * static_cast<size_t>(width));
    cpu::PrepareTask task{x, 1, width, 32, nullptr, nullptr};
    task.shifted = At(forms_.shifted, shifted_, at);
    task.sums = At(forms_.sums32, sums32_, row * (dim_ / 32) + first_value / 32);
    if (forms_.shifted || forms_.sums32) cpu::Kernels().prepare(task);
    if (!forms_.sums16) continue;
    task.group = 16;
    task.shifted = nullptr;
    task.sums = At(true, sums16_, row * (dim_ / 16) + first_value / 16);
    cpu::Kernels().prepare(task);
  }
}

void MatMulInput::PutChunks(const float* x, int64_t row, int64_t first_value, int64_t width) {
  constexpr int64_t kChunk = cpu::kFloatChain;
  const int64_t end = first_value + width;
  for (int64_t value = first_value; value < end;) {
    const int64_t next = std::min(end, (value / kChunk + 1) * kChunk);
    std::memcpy(chunks_.data() + (value / kChunk * rows_ + row) * kChunk + value % kChunk,
                x + value - first_value, sizeof(float) * static_cast<size_t>(next - value));
    value = next;
  }
}

void MatMulInput::PutAll(const float* x, ThreadTeam& team) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, dim_));
  team.ParallelFor(rows_, grain, [&](int64_t begin, int64_t end, int) {
    Put(x + begin * dim_, begin, end - begin, 0, dim_);
  });
}

MatMulInput::Floats MatMulInput::floats() const {
  return {DataOf(forms_.x, x_), DataOf(forms_.chunks, chunks_), DataOf(forms_.shifted, shifted_),
          DataOf(forms_.sums16, sums16_), DataOf(forms_.sums32, sums32_)};
}

MatMulInput::Quantised MatMulInput::quantised() const {
  return {DataOf(forms_.int8, quants_),
          DataOf(forms_.int8, scales_),
          DataOf(forms_.int8_sums, int8_sums_),
          DataOf(forms_.int8_halves, int8_halves_),
          DataOf(forms_.int8_lanes16, int8_lanes16_),
          DataOf(forms_.int8_lanes32, int8_lanes32_)};
}

}  // namespace hexad
