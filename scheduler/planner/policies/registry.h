#pragma once

// Planner policies by their name in the configuration.

#include <memory>
#include <string_view>
#include <vector>

#include "scheduler/planner/plan_types.h"

namespace hexad {

// nullptr when no policy has that name.
std::unique_ptr<PlannerPolicy> MakePlannerPolicy(std::string_view name);
std::vector<std::string_view> PlannerPolicyNames();

}  // namespace hexad
