#include "kernels/cpu/panels.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/kernel_set.h"
#include "kernels/cpu/pack.h"
#include "kernels/quant_block.h"

namespace hexad::cpu {
namespace {

constexpr int64_t kSideBySide = 4;                 // one-row products read as many streams
constexpr int64_t kPieceBytes = int64_t{1} << 19;  // of weights: about 24 us at memory speed
constexpr int64_t kPiecesPerThread = 8;

void ComputeFloatPanels(const MatMulInput& input, const PackedMatrix& weights, int64_t first,
                        int64_t last, float* y, int64_t y_stride) {
  FloatPanelsTask task{};
  const PackedFormat format = FormatOf(weights.type());
  task.kind = format.kind;
  task.panels = last - first;
  task.panel_bytes = LayoutOf(format, weights.in()).bytes;
  task.weights = reinterpret_cast<const uint8_t*>(weights.data()) + first * task.panel_bytes;
  task.in = weights.in();
  task.tokens = input.rows();
  task.x = input.floats().chunks;
  task.y = y;
  task.y_stride = y_stride;
  task.rows = std::min(task.panels * kPanelRows, weights.out() - first * kPanelRows);
  assert(task.x != nullptr);
  Kernels().float_panels(task);
}

// Where the parts of panel `first` lie.
PanelLayout Locate(const PackedMatrix& weights, int64_t first, PanelTask& task) {
  task.format = FormatOf(weights.type(), weights.activations());
  const PanelLayout layout = LayoutOf(task.format, weights.in());
  task.quants = reinterpret_cast<const uint8_t*>(weights.data()) + first * layout.bytes;
  task.scales = task.quants + layout.scales;
  task.supers = task.quants + layout.supers;
  task.in = weights.in();
  return layout;
}

void ComputeInt8Panels(const MatMulInput& input, const PackedMatrix& weights, int64_t first,
                       int64_t last, float* y, int64_t y_stride) {
  const MatMulInput::Quantised x = input.quantised();
  Int8PanelTask task{};
  task.format = FormatOf(weights.type(), weights.activations());
  task.in = weights.in();
  task.panel_bytes = PanelBytes(task.format, task.in);
  task.panel = reinterpret_cast<const uint8_t*>(weights.data()) + first * task.panel_bytes;
  task.panels = last - first;
  task.tokens = input.rows();
  task.x = x.quants;
  task.x_scales = x.scales;
  task.x_sums = x.sums;
  task.x_halves = x.halves;
  task.x_lanes = task.format.group == 16 ? x.lanes16 : x.lanes32;
  task.y = y;
  task.y_stride = y_stride;
  task.rows = std::min(task.panels * kPanelRows, weights.out() - first * kPanelRows);
  assert(task.x != nullptr);
  Kernels().int8_panels(task);
}

void ComputeF32Panels(const MatMulInput& input, const PackedMatrix& weights, int64_t first,
                      int64_t last, float* y, int64_t y_stride) {
  const MatMulInput::Floats x = input.floats();
  PanelTask task{};
  const int64_t bytes = Locate(weights, first, task).bytes;
  task.tokens = input.rows();
  task.x = task.format.kind == WeightKind::kU4 ? x.shifted : x.x;
  task.sums = task.format.group == 16 ? x.sums16 : x.sums32;
  task.y_stride = y_stride;
  assert(task.x != nullptr);
  for (int64_t p = first; p < last; ++p) {
    task.y = y + (p - first) * kPanelRows;
    task.rows = static_cast<int32_t>(std::min<int64_t>(kPanelRows, weights.out() - p * kPanelRows));
    Kernels().panel(task);
    task.quants += bytes;
    task.scales += bytes;
    task.supers += bytes;
  }
}

}  // namespace

int64_t PanelCount(const PackedMatrix& matrix) {
  return (matrix.out() + kPanelRows - 1) / kPanelRows;
}

int64_t PanelsPerPiece(const PackedMatrix& matrix, int64_t matrices, const ThreadTeam& team) {
  const int64_t panels = PanelCount(matrix);
  const int64_t panel_bytes =
      std::max<int64_t>(1, static_cast<int64_t>(matrix.bytes()) / panels * matrices);
  const int64_t most =
      std::min(kPieceBytes / panel_bytes, panels / (kPiecesPerThread * int64_t{team.threads()}));
  return std::max(kSideBySide, most / kSideBySide * kSideBySide);
}

void ComputePanels(const MatMulInput& x, const PackedMatrix& weights, int64_t first, int64_t last,
                   float* y, int64_t y_stride) {
  const auto compute = weights.activations() == Activations::kInt8 ? ComputeInt8Panels
                       : QuantGroup(weights.type()) == 0           ? ComputeFloatPanels
                                                                   : ComputeF32Panels;
  compute(x, weights, first, last, y, y_stride);
}

}  // namespace hexad::cpu
