#pragma once

// GGUF v2/v3, memory-mapped and validated before use: every offset, shape, count and string is
// checked against the file's size, so that a hostile or truncated file is an error message and
// never a fault. Little-endian files on little-endian machines.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kernels/types.h"

namespace hexad {

struct GgufTensor {
  std::string name;  // unique in the file, 1 to 64 bytes
  DType type{};
  std::vector<int64_t> dims;  // 1 to 4, as in the file: dims[0] is contiguous (the input size)
  std::span<const std::byte> data;  // inside the mapping; the ranges of two tensors never overlap
};

struct GgufArray;
using GgufValue =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::unique_ptr<GgufArray>>;
// Homogeneous; numbers are widened, so an array takes at most eight times its bytes in the file.
// Arrays of arrays, which no known model uses, are refused.
struct GgufArray {
  std::variant<std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>,
               std::vector<std::string>, std::vector<bool>>
      items;
};

class GgufFile {
 public:
  // Maps the file read-only; it must not be truncated while the object lives. Errors name the file,
  // the byte offset, the field, what was found there and what to do about it: NotFound and
  // PermissionDenied from the file system, InvalidArgument for a damaged file, Unimplemented for a
  // byte order, version or quantisation that hexad does not read.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(const std::string& path);
  // The same over bytes that the caller keeps alive; for tests and the fuzzer.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(std::span<const std::byte> bytes,
                                                         std::string_view name);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const;
  const absl::flat_hash_map<std::string, GgufValue>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

  // Typed look-ups: NotFound when absent, InvalidArgument when of another type or out of range.
  absl::StatusOr<std::string> String(std::string_view key) const;
  absl::StatusOr<int64_t> Int(std::string_view key) const;
  absl::StatusOr<double> Float(std::string_view key) const;
  absl::StatusOr<bool> Bool(std::string_view key) const;
  // nullptr when absent or not an array of strings.
  const std::vector<std::string>* Strings(std::string_view key) const;
  const GgufArray* Array(std::string_view key) const;

  // Lets go of the memory that holds a part of the mapping, for who has made a copy of its own:
  // reading it again fetches it from the file. Any thread; does nothing over a caller's bytes.
  void ReleasePages(std::span<const std::byte> bytes) const;
  void ReleasePages() const;  // of the whole file

  // Everything before the tensors' data: metadata and the table of tensors.
  std::span<const std::byte> header() const { return header_; }

 private:
  friend class GgufParser;
  GgufFile() = default;
  std::string path_;
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::span<const std::byte> header_;
  absl::flat_hash_map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> tensor_index_;
};

}  // namespace hexad
