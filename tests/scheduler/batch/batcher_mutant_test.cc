// Linked once for each planted bug of CMakeLists.txt: the property test has to find it, or its
// silence about the real code would mean nothing.

#include <gtest/gtest.h>

#include <iostream>

#include "tests/scheduler/batch/random_script.h"

namespace hexad::testing {
namespace {

TEST(BatcherMutant, IsFound) {
  const std::optional<uint64_t> seed = FirstFailingSeed(1, 500);
  ASSERT_TRUE(seed) << "500 seeds do not see the planted bug";
  std::cout << "found by seed " << *seed << ": "
            << RunApart(RandomScript(*seed)).value_or("nothing when alone") << std::endl;
}

}  // namespace
}  // namespace hexad::testing
