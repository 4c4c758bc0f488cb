#pragma once

// Writes small GGUF files for tests: just enough of the format, and nothing is checked, so that
// tests can also write wrong ones.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.h"

namespace hexad {

uint32_t GgufTypeId(DType type);

class GgufWriter final {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  void Set(std::string_view key, uint32_t value);
  void Set(std::string_view key, int32_t value);
  void Set(std::string_view key, float value);
  void Set(std::string_view key, bool value);
  void Set(std::string_view key, const char* value) { Set(key, std::string_view(value)); }
  void Set(std::string_view key, std::string_view value);
  void Set(std::string_view key, const std::vector<std::string>& values);
  void Set(std::string_view key, const std::vector<int32_t>& values);
  void Set(std::string_view key, const std::vector<float>& values);
  void Set(std::string_view key, const std::vector<bool>& values);
  // A metadata entry of any type id with bytes as given.
  void SetRaw(std::string_view key, uint32_t type, std::span<const std::byte> value);

  void Tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type,
              std::span<const std::byte> data);
  void Tensor(std::string_view name, std::vector<uint64_t> dims, std::span<const float> values);

  std::vector<std::byte> Build(uint32_t alignment = 32) const;

 private:
  struct Info {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type;
    std::vector<std::byte> data;
  };
  uint32_t version_;
  uint64_t entries_ = 0;
  std::vector<std::byte> metadata_;
  std::vector<Info> tensors_;
};

// Little-endian bytes appended to `out`.
template <typename T>
void AppendBytes(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}
void AppendText(std::vector<std::byte>& out, std::string_view text);

// Writes `bytes` to a file of the test's temporary folder and returns its path.
std::string WriteTemporaryFile(std::string_view name, std::span<const std::byte> bytes);

}  // namespace hexad
