#pragma once

#include "server/config/field.h"

namespace hexad {

// The whole tree, bound to `configuration`, which must outlive it.
Field DescribeConfiguration(Configuration& configuration);

}  // namespace hexad
