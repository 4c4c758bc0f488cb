#include "kernels/shim/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define HEXAD_SHIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEXAD_SHIM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HEXAD_SHIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEXAD_SHIM_TSAN 1
#endif
#endif

#if HEXAD_SHIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if HEXAD_SHIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace hexad::shim {
namespace {

namespace context = boost::context;

// Gives the fiber the stack that it was constructed with.
struct BorrowedStack {
  void* bottom;
  size_t bytes;
  context::stack_context allocate() const {
    context::stack_context stack;
    stack.sp = static_cast<std::byte*>(bottom) + bytes;
    stack.size = bytes;
    return stack;
  }
  void deallocate(context::stack_context&) const {}
};

}  // namespace

StackPool::StackPool(size_t count, size_t stack_bytes)
    : count_(count), stack_bytes_(stack_bytes), guard_bytes_(sysconf(_SC_PAGESIZE)) {
  const size_t bytes = count_ * (stack_bytes_ + guard_bytes_);
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    std::perror("mmap of fiber stacks");
    std::abort();
  }
  mapping_ = static_cast<std::byte*>(mapping);
  for (size_t i = 0; i < count_; ++i) {
    mprotect(mapping_ + i * (stack_bytes_ + guard_bytes_), guard_bytes_, PROT_NONE);
  }
}

StackPool::~StackPool() {
#if HEXAD_SHIM_ASAN
  // The next owner of these addresses must not inherit the poison of frames that lived here.
  for (size_t i = 0; i < count_; ++i) __asan_unpoison_memory_region(bottom(i), stack_bytes_);
#endif
  munmap(mapping_, count_ * (stack_bytes_ + guard_bytes_));
}

void* StackPool::bottom(size_t index) const {
  return mapping_ + index * (stack_bytes_ + guard_bytes_) + guard_bytes_;
}

struct Fiber::Impl {
  void* stack_bottom;
  size_t stack_bytes;
  context::fiber inside;   // the body, while it is suspended
  context::fiber outside;  // the caller of Resume(), while the body runs
#if HEXAD_SHIM_ASAN
  void* fake_stack_inside = nullptr;
  void* fake_stack_outside = nullptr;
  const void* outside_bottom = nullptr;
  size_t outside_bytes = 0;
#endif
#if HEXAD_SHIM_TSAN
  void* tsan_inside = nullptr;
  void* tsan_outside = nullptr;
#endif

  void BeforeResume() {
#if HEXAD_SHIM_ASAN
    __sanitizer_start_switch_fiber(&fake_stack_outside, stack_bottom, stack_bytes);
#endif
#if HEXAD_SHIM_TSAN
    tsan_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_inside, 0);
#endif
  }
  void AfterResume() {
#if HEXAD_SHIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_outside, nullptr, nullptr);
#endif
  }
  void BeforeYield(bool last) {
#if HEXAD_SHIM_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_inside, outside_bottom,
                                   outside_bytes);
#endif
#if HEXAD_SHIM_TSAN
    __tsan_switch_to_fiber(tsan_outside, 0);
#endif
  }
  void AfterYield() {
#if HEXAD_SHIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_inside, &outside_bottom, &outside_bytes);
#endif
  }
};

Fiber::Fiber(void* stack_bottom, size_t stack_bytes, std::function<void(Fiber&)> body)
    : impl_(std::make_unique<Impl>()) {
  impl_->stack_bottom = stack_bottom;
  impl_->stack_bytes = stack_bytes;
#if HEXAD_SHIM_ASAN
  __asan_unpoison_memory_region(stack_bottom, stack_bytes);
#endif
#if HEXAD_SHIM_TSAN
  impl_->tsan_inside = __tsan_create_fiber(0);
#endif
  impl_->inside = context::fiber(std::allocator_arg, BorrowedStack{stack_bottom, stack_bytes},
                                 [this, body = std::move(body)](context::fiber&& outside) {
                                   impl_->AfterYield();
                                   impl_->outside = std::move(outside);
                                   body(*this);
                                   impl_->BeforeYield(/*last=*/true);
                                   return std::move(impl_->outside);
                                 });
}

Fiber::~Fiber() {
#if HEXAD_SHIM_TSAN
  __tsan_destroy_fiber(impl_->tsan_inside);
#endif
}

void Fiber::Resume() {
  impl_->BeforeResume();
  impl_->inside = std::move(impl_->inside).resume();
  impl_->AfterResume();
}

void Fiber::Yield() {
  impl_->BeforeYield(/*last=*/false);
  impl_->outside = std::move(impl_->outside).resume();
  impl_->AfterYield();
}

}  // namespace hexad::shim
