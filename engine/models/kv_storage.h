#pragma once

// The memory of a host executor's KV pools: allocated once, a pool a group, keys and values of
// every layer in it.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/models/transformer_spec.h"
#include "kernels/attention.h"
#include "kernels/buffer.h"

namespace hexad {

struct KvStorageOptions {
  DType type = DType::kF16;  // kF16, kF32 or kQ8_0
  int32_t block_tokens = 16;
  std::vector<uint32_t> blocks;  // of each group
};

// InvalidArgument when keys and values of this model cannot be kept so.
absl::Status CheckKvType(const TransformerSpec& spec, DType type);

class KvStorage final {
 public:
  // ResourceExhausted when the memory is not there.
  static absl::StatusOr<KvStorage> Make(const TransformerSpec& spec,
                                        const KvStorageOptions& options);

  const KvPool& layer(int32_t layer) const { return layers_[static_cast<size_t>(layer)]; }
  void CopyBlock(uint32_t group, uint32_t from, uint32_t to);

 private:
  KvStorage() = default;
  HugeBuffer memory_;
  std::vector<KvPool> layers_;
  std::vector<std::vector<int32_t>> group_layers_;
};

}  // namespace hexad
