#include "kernels/cpu/kernel_set.h"

#include "kernels/matmul.h"

#if defined(HEXAD_AVX2)
#include <cpuid.h>

#include "kernels/cpu/avx2.h"
#endif

namespace hexad {
namespace cpu {

#if defined(HEXAD_AVX2)
const KernelSet kAvx2Kernels = {
    .name = "avx2-f32-2",
    .int8_name = "avx2-i8-3",
    .float_panels = Avx2FloatPanels,
    .panel = Avx2Panel,
    .prepare = Avx2Prepare,
    .int8_panels = Avx2Int8Panels,
    .quantize = Avx2Quantize,
    .add = Avx2Add,
    .max = Avx2Max,
    .rotate = Avx2Rotate,
    .rms_norm = Avx2RmsNorm,
    .softcap = Avx2Softcap,
    .silu_gate = Avx2SiluGate,
    .gelu_gate = Avx2GeluGate,
};

namespace {

// Asked of the processor itself: clang's __builtin_cpu_supports does not know the name.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace
#endif

const KernelSet& Kernels() {
#if defined(HEXAD_AVX2)
  static const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c();
  if (avx2) return kAvx2Kernels;
#endif
  return kPortableKernels;
}

}  // namespace cpu

std::string_view KernelSetName(Activations activations) {
  const cpu::KernelSet& kernels = cpu::Kernels();
  return activations == Activations::kInt8 ? kernels.int8_name : kernels.name;
}

}  // namespace hexad
