#include "kvcache/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace hexad {

void CheckFailed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", file, line, message, condition);
  std::abort();
}

}  // namespace hexad
