#pragma once

// Vectors whose data begins at a cache line: pieces of them that are whole lines, written by
// different threads, share none.

#include <cstddef>
#include <new>
#include <vector>

namespace hexad {

inline constexpr size_t kCacheLine = 64;

template <typename T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT: as allocators convert

  T* allocate(size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kCacheLine}));
  }
  void deallocate(T* data, size_t /*count*/) {
    ::operator delete (data, std::align_val_t{kCacheLine});
  }
  template <typename U>
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator<U>&) {
    return true;
  }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace hexad
