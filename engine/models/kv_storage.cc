#include "engine/models/kv_storage.h"

#include <cstring>
#include <new>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostBytes = int64_t{1} << 46;

int64_t PoolBytes(const KvBlockShape& shape, uint32_t blocks) {
  return (shape.BlockBytes() * blocks + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::Status CheckKvType(const TransformerSpec& spec, DType type) {
  if (type != DType::kF16 && type != DType::kF32 && type != DType::kQ8_0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("KV in %s: use F16, F32 or Q8_0", Info(type).name));
  }
  if (type == DType::kQ8_0 && spec.head_dim % Info(type).block_values != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "kvcache.type q8_0 needs heads of a multiple of %d dimensions, and this model's have %d: "
        "use f16 or f32",
        Info(type).block_values, spec.head_dim));
  }
  return absl::OkStatus();
}

absl::StatusOr<KvStorage> KvStorage::Make(const TransformerSpec& spec,
                                          const KvStorageOptions& options) {
  KvBlockShape shape;
  shape.type = options.type;
  shape.kv_heads = spec.num_kv_heads;
  shape.head_dim = spec.head_dim;
  shape.block_tokens = options.block_tokens;
  const absl::Status type_fits = CheckKvType(spec, options.type);
  if (!type_fits.ok()) return type_fits;
  if (!shape.Valid()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("KV blocks of %d tokens in %s: hexad has multiples of %d tokens",
                        options.block_tokens, Info(options.type).name, kKvTile));
  }
  if (options.blocks.size() != spec.groups.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("KV blocks are given for %d groups and the model has %d",
                        options.blocks.size(), spec.groups.size()));
  }
  int64_t total = 0;
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    if (options.blocks[g] == 0) {
      return absl::InvalidArgumentError(absl::StrFormat("KV group %d has no blocks", g));
    }
    if (options.blocks[g] > kMostBytes / shape.BlockBytes()) {
      total = kMostBytes + 1;
      break;
    }
    total += PoolBytes(shape, options.blocks[g]) * 2 *
             static_cast<int64_t>(spec.groups[g].layers.size());
    if (total > kMostBytes) break;
  }
  KvStorage storage;
  try {
    if (total > kMostBytes) throw std::bad_alloc();
    storage.memory_ = HugeBuffer(static_cast<size_t>(total));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("no memory for KV pools of %d bytes; give the KV cache less", total));
  }
  storage.layers_.resize(static_cast<size_t>(spec.num_layers));
  std::byte* next = storage.memory_.data();
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    storage.group_layers_.push_back(spec.groups[g].layers);
    const int64_t bytes = PoolBytes(shape, options.blocks[g]);
    for (const int32_t layer : spec.groups[g].layers) {
      storage.layers_[static_cast<size_t>(layer)] = KvPool{shape, next, next + bytes};
      next += 2 * bytes;
    }
  }
  return storage;
}

void KvStorage::CopyBlock(uint32_t group, uint32_t from, uint32_t to) {
  if (from == to) return;
  for (const int32_t layer : group_layers_[group]) {
    const KvPool& pool = layers_[static_cast<size_t>(layer)];
    const auto bytes = static_cast<size_t>(pool.layout.BlockBytes());
    std::memcpy(pool.k + to * bytes, pool.k + from * bytes, bytes);
    std::memcpy(pool.v + to * bytes, pool.v + from * bytes, bytes);
  }
}

}  // namespace hexad
