// Products of the 32-value formats with int8 activations; like matmul_avx2.cc compiled with flags
// of its own and free of library headers.

#include "kernels/cpu/avx2.h"
#include "kernels/cpu/avx2_int8_panels.h"

namespace hexad::cpu {

void Avx2Int8Panels(const Int8PanelTask& task) {
  if (task.format.multipliers) return Avx2Int8SuperPanels(task);
  switch (task.format.kind) {
    case WeightKind::kQuadU4:
      return task.format.has_min ? Panels<Format<ReadU4, 32, 0, true, false>>(task)
                                 : Panels<Format<ReadU4, 32, 3, false, false>>(task);
    case WeightKind::kQuadU5:
      return task.format.has_min ? Panels<Format<ReadU5, 32, 0, true, false>>(task)
                                 : Panels<Format<ReadU5, 32, 4, false, false>>(task);
    case WeightKind::kQuadCode:
      return Panels<Format<ReadCode, 32, 0, false, false>>(task);
    default:
      return Panels<Format<ReadS8, 32, 0, false, false>>(task);
  }
}

}  // namespace hexad::cpu
