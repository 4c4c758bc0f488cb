#include <vector>

#include "kernels/dequantize.h"
#include "kernels/reference/reference.h"

namespace hexad::reference {

void MatMul(const float* x, int64_t tokens, DType type, const void* rows, int64_t out, int64_t in,
            float* y) {
  std::vector<float> weights(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o) {
    DequantizeRow(type, static_cast<const char*>(rows) + o * RowBytes(type, in), in,
                  weights.data());
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < in; ++k) sum += double{x[t * in + k]} * double{weights[k]};
      y[t * out + o] = static_cast<float>(sum);
    }
  }
}

}  // namespace hexad::reference
