#include "kernels/buffer.h"

#include <sys/mman.h>

#include <new>

namespace hexad {

HugeBuffer::HugeBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(address, bytes, MADV_HUGEPAGE);  // refusal costs speed only
  data_ = static_cast<std::byte*>(address);
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace hexad
