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

bool NeedsSums(const cpu::PackedFormat& format) { return format.has_min || format.bias != 0; }

// The floats live in `storage` until the next call on this thread.
PreparedInput Prepare(const float* x, int64_t tokens, int64_t in,
                      std::span<const MatMulOutput> outputs, std::vector<float>& storage,
                      ThreadTeam& team) {
  bool shifted = false, sums16 = false, sums32 = false;
  for (const MatMulOutput& output : outputs) {
    const cpu::PackedFormat format = cpu::FormatOf(output.weights->type());
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

int64_t Panels(const PackedMatrix& matrix) {
  return (matrix.out() + cpu::kPanelRows - 1) / cpu::kPanelRows;
}

// Panels first..last-1 of one matrix.
void ComputePanels(const float* x, const PreparedInput& prepared, int64_t tokens,
                   const MatMulOutput& output, int64_t first, int64_t last) {
  const PackedMatrix& weights = *output.weights;
  cpu::PanelTask task{};
  task.format = cpu::FormatOf(weights.type());
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
  thread_local std::vector<float> storage;  // of the calling thread; workers read it
  const PreparedInput prepared = Prepare(x, tokens, in, outputs, storage, team);
  team.ParallelFor(panels, [&](int64_t begin, int64_t end, int) {
    int64_t base = 0;
    for (const MatMulOutput& output : outputs) {
      const int64_t count = Panels(*output.weights);
      const int64_t first = std::max<int64_t>(0, begin - base);
      const int64_t last = std::min(count, end - base);
      if (first < last) ComputePanels(x, prepared, tokens, output, first, last);
      base += count;
    }
  });
}

}  // namespace hexad
