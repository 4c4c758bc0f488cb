// Products of the 256-value formats with int8 activations; like matmul_avx2.cc compiled with flags
// of its own and free of library headers.

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_int8_panels.h"

namespace hexad::cpu {

void Avx2Int8SuperPanels(const Int8PanelTask& task) {
  switch (task.format.kind) {
    case WeightKind::kQuadU2:
      return Panels<Format<ReadU2, 16, 0, true, true>>(task);
    case WeightKind::kQuadU3:
      return Panels<Format<ReadU3, 16, 2, false, true>>(task);
    case WeightKind::kQuadU4:
      return Panels<Format<ReadU4, 32, 0, true, true>>(task);
    case WeightKind::kQuadU5:
      return Panels<Format<ReadU5, 32, 0, true, true>>(task);
    default:
      return Panels<Format<ReadU6, 16, 5, false, true>>(task);
  }
}

}  // namespace hexad::cpu
