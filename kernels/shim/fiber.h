#pragma once

// One fiber: a function on its own stack that can stop in the middle and go on later, on the thread
// that made it. Boost.Context switches in tens of nanoseconds; ASan and TSan are told of every
// switch.

#include <cstddef>
#include <functional>
#include <memory>

namespace hexad::shim {

// Stacks of equal size in one mapping, each above a guard page, so that an overflow is a fault at
// the place where it happens.
class StackPool final {
 public:
  StackPool(size_t count, size_t stack_bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  void* bottom(size_t index) const;
  size_t stack_bytes() const { return stack_bytes_; }
  size_t count() const { return count_; }

 private:
  size_t count_;
  size_t stack_bytes_;
  size_t guard_bytes_;
  std::byte* mapping_;
};

class Fiber final {
 public:
  // The body starts at the first Resume(). It must return before the fiber is destroyed, and throws
  // nothing. The stack belongs to this fiber alone until then.
  Fiber(void* stack_bottom, size_t stack_bytes, std::function<void(Fiber&)> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it yields or returns. Called from outside the fiber.
  void Resume();
  // Back to the caller of Resume(). Called from inside the body.
  void Yield();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hexad::shim
