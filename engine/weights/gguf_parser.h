#pragma once

// The reading half of gguf.h: bytes in, a filled GgufFile or a named error out. Every count is
// compared with the bytes that are left before anything is allocated for it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/weights/gguf.h"

namespace hexad {

class GgufParser final {
 public:
  // `bytes` and `file` must outlive the parser; `bytes` must outlive what is put into `file`.
  GgufParser(std::span<const std::byte> bytes, GgufFile& file) : bytes_(bytes), file_(file) {}

  absl::Status Parse();

 private:
  struct Header {
    uint64_t tensors = 0;
    uint64_t entries = 0;
  };
  absl::StatusOr<Header> ReadHeader();
  absl::Status ReadEntry(uint64_t index);
  absl::StatusOr<GgufValue> ReadValue(uint32_t type, const std::string& key);
  absl::StatusOr<GgufValue> ReadArray(const std::string& key);
  template <typename Stored, typename Widened>
  absl::StatusOr<GgufValue> ReadNumbers(uint64_t count, const std::string& key);
  absl::StatusOr<GgufValue> ReadStrings(uint64_t count, const std::string& key);
  absl::StatusOr<GgufValue> ReadBools(uint64_t count, const std::string& key);
  absl::Status ReadTensorInfo(uint64_t index);
  absl::StatusOr<uint64_t> Alignment() const;
  absl::Status PlaceTensors();
  absl::Status CheckNoOverlap() const;

  size_t left() const { return bytes_.size() - offset_; }
  template <typename T>
  absl::StatusOr<T> Read(std::string_view field);
  absl::StatusOr<bool> ReadBool(std::string_view field);
  absl::StatusOr<std::string> ReadString(std::string_view field, size_t longest);
  absl::Status CheckCount(uint64_t count, size_t least_bytes_each, uint64_t most,
                          std::string_view field) const;

  // "FILE: at byte N: FIELD is VALUE: REMEDY"
  absl::Status Damaged(size_t offset, std::string_view field, std::string_view value,
                       std::string_view why) const;
  absl::Status Unsupported(size_t offset, std::string_view field, std::string_view value,
                           std::string_view remedy) const;

  std::span<const std::byte> bytes_;
  GgufFile& file_;
  size_t offset_ = 0;
  std::vector<uint64_t> tensor_offsets_;       // relative to the data section
  std::vector<size_t> tensor_info_positions_;  // for error messages
};

}  // namespace hexad
