#include "kernels/matmul.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/pack.h"

namespace hexad {
namespace {

// x in the forms that the outputs need, made once a call.
struct PreparedInput {
  const float* shifted = nullptr;
  const float* sums16 = nullptr;
  const float* sums32 = nullptr;
};

// The same for int8 activations, kept until the next call on this thread.
struct QuantizedInput {
  std::vector<int8_t> quants;
  std::vector<float> scales;
  std::vector<int32_t> sums16, sums32;
};

bool IsInt8(const MatMulOutput& output) {
  return output.weights->activations() == Activations::kInt8;
}

cpu::PackedFormat FormatOf(const PackedMatrix& matrix) {
  return cpu::FormatOf(matrix.type(), matrix.activations());
}

bool NeedsSums(const cpu::PackedFormat& format) { return format.has_min || format.bias != 0; }

// The floats live in `storage` until the next call on this thread.
PreparedInput Prepare(const float* x, int64_t tokens, int64_t in,
                      std::span<const MatMulOutput> outputs, std::vector<float>& storage,
                      ThreadTeam& team) {
  bool shifted = false, sums16 = false, sums32 = false;
  for (const MatMulOutput& output : outputs) {
    if (IsInt8(output)) continue;
    const cpu::PackedFormat format = FormatOf(*output.weights);
    shifted |= format.kind == cpu::WeightKind::kU4;
    sums16 |= NeedsSums(format) && format.group == 16;
    sums32 |= NeedsSums(format) && format.group == 32;
  }
  const int64_t shifted_floats = shifted ? tokens * in : 0;
  const int64_t floats16 = sums16 ? tokens * (in / 16) : 0;
  const int64_t floats32 = sums32 ? tokens * (in / 32) : 0;
  const size_t needed = static_cast<size_t>(shifted_floats + floats16 + floats32);
  if (needed == 0) return {};
  if (storage.size() < needed) storage.resize(needed);
  float* const base = storage.data();
  float* const base16 = base + shifted_floats;
  float* const base32 = base16 + floats16;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in));
  team.ParallelFor(tokens, grain, [&](int64_t begin, int64_t end, int) {
    cpu::PrepareTask task{x + begin * in, end - begin, in, 32, nullptr, nullptr};
    if (shifted) task.shifted = base + begin * in;
    if (sums32) task.sums = base32 + begin * (in / 32);
    if (shifted || sums32) cpu::Kernels().prepare(task);
    if (!sums16) return;
    task.group = 16;
    task.shifted = nullptr;
    task.sums = base16 + begin * (in / 16);
    cpu::Kernels().prepare(task);
  });
  return {shifted ? base : nullptr, sums16 ? base16 : nullptr, sums32 ? base32 : nullptr};
}

template <typename T>
T* Grow(std::vector<T>& storage, int64_t count) {
  if (storage.size() < static_cast<size_t>(count)) storage.resize(static_cast<size_t>(count));
  return storage.data();
}

void Quantize(const float* x, int64_t tokens, int64_t in, std::span<const MatMulOutput> outputs,
              QuantizedInput& result, ThreadTeam& team) {
  bool any = false, sums16 = false, sums32 = false;
  for (const MatMulOutput& output : outputs) {
    if (!IsInt8(output)) continue;
    any = true;
    const int32_t group = FormatOf(*output.weights).group;
    sums16 |= group == 16;
    sums32 |= group == 32;
  }
  if (!any) return;
  cpu::QuantizeTask all{x, tokens, in, 0, 0, nullptr, nullptr, nullptr, nullptr};
  all.quants = Grow(result.quants, tokens * in);
  all.scales = Grow(result.scales, tokens * (in / 32));
  if (sums16) all.sums16 = Grow(result.sums16, tokens * (in / 16));
  if (sums32) all.sums32 = Grow(result.sums32, tokens * (in / 32));
  const int64_t grain = std::max<int64_t>(1, 32768 / in);
  team.ParallelFor(tokens, grain, [&](int64_t begin, int64_t end, int) {
    cpu::QuantizeTask task = all;
    task.first_token = begin;
    task.last_token = end;
    cpu::Kernels().quantize(task);
  });
}

int64_t Panels(const PackedMatrix& matrix) {
  return (matrix.out() + cpu::kPanelRows - 1) / cpu::kPanelRows;
}

// Panels first..last-1 of one matrix for int8 activations.
void ComputeInt8Panels(const QuantizedInput& x, int64_t tokens, const MatMulOutput& output,
                       int64_t first, int64_t last) {
  const PackedMatrix& weights = *output.weights;
  cpu::Int8PanelTask task{};
  task.format = FormatOf(weights);
  const cpu::PanelLayout layout = cpu::LayoutOf(task.format, weights.in());
  task.in = weights.in();
  task.tokens = tokens;
  task.x = x.quants.data();
  task.x_scales = x.scales.data();
  task.x_sums = task.format.group == 16 ? x.sums16.data() : x.sums32.data();
  task.panels = last - first;
  task.panel_bytes = layout.bytes;
  task.quants = reinterpret_cast<const uint8_t*>(weights.data()) + first * layout.bytes;
  task.scales = task.quants + layout.scales;
  task.supers = task.quants + layout.supers;
  task.y = output.y + first * cpu::kPanelRows;
  task.y_stride = weights.out();
  task.rows = std::min(task.panels * cpu::kPanelRows, weights.out() - first * cpu::kPanelRows);
  cpu::Kernels().int8_panels(task);
}

// Panels first..last-1 of one matrix.
void ComputePanels(const float* x, const PreparedInput& prepared, int64_t tokens,
                   const MatMulOutput& output, int64_t first, int64_t last) {
  const PackedMatrix& weights = *output.weights;
  cpu::PanelTask task{};
  task.format = FormatOf(weights);
  const cpu::PanelLayout layout = cpu::LayoutOf(task.format, weights.in());
  task.in = weights.in();
  task.tokens = tokens;
  task.x = task.format.kind == cpu::WeightKind::kU4 ? prepared.shifted : x;
  task.sums = task.format.group == 16 ? prepared.sums16 : prepared.sums32;
  task.y_stride = weights.out();
  const uint8_t* const data = reinterpret_cast<const uint8_t*>(weights.data());
  for (int64_t p = first; p < last; ++p) {
    task.quants = data + p * layout.bytes;
    task.scales = task.quants + layout.scales;
    task.supers = task.quants + layout.supers;
    task.y = output.y + p * cpu::kPanelRows;
    task.rows = static_cast<int32_t>(
        std::min<int64_t>(cpu::kPanelRows, weights.out() - p * cpu::kPanelRows));
    cpu::Kernels().panel(task);
  }
}

}  // namespace

void MatMul(const float* x, int64_t tokens, std::span<const MatMulOutput> outputs,
            ThreadTeam& team) {
  if (tokens <= 0 || outputs.empty()) return;
  const int64_t in = outputs[0].weights->in();
  int64_t panels = 0;
  for (const MatMulOutput& output : outputs) {
    assert(output.weights->in() == in);
    panels += Panels(*output.weights);
  }
  // Of the calling thread; workers read them through these references.
  thread_local std::vector<float> storage;
  thread_local QuantizedInput storage_int8;
  const QuantizedInput& quantized = storage_int8;
  const PreparedInput prepared = Prepare(x, tokens, in, outputs, storage, team);
  Quantize(x, tokens, in, outputs, storage_int8, team);
  team.ParallelFor(panels, [&](int64_t begin, int64_t end, int) {
    int64_t base = 0;
    for (const MatMulOutput& output : outputs) {
      const int64_t count = Panels(*output.weights);
      const int64_t first = std::max<int64_t>(0, begin - base);
      const int64_t last = std::min(count, end - base);
      base += count;
      if (first >= last) continue;
      if (IsInt8(output)) {
        ComputeInt8Panels(quantized, tokens, output, first, last);
      } else {
        ComputePanels(x, prepared, tokens, output, first, last);
      }
    }
  });
}

}  // namespace hexad
