#include "kernels/cpu/attention_kernels.h"

#include "kernels/attention.h"
#include "kernels/cpu/kernel_set.h"

namespace hexad {
namespace cpu {

#if defined(HEXAD_AVX2)
const AttentionKernelSet kAvx2Attention = {
    .name = "avx2-attention-2",
    .scratch_floats = Avx2AttendScratch,
    .attend = Avx2Attend,
    .merge = Avx2Merge,
    .store_half = Avx2StoreHalf,
    .store_int8 = Avx2StoreInt8,
};
#endif

const AttentionKernelSet& AttentionKernels() {
#if defined(HEXAD_AVX2)
  static const bool portable = &Kernels() == &kPortableKernels;
  if (!portable) return kAvx2Attention;
#endif
  return kPortableAttention;
}

}  // namespace cpu

std::string_view AttentionKernelsName() { return cpu::AttentionKernels().name; }

}  // namespace hexad
