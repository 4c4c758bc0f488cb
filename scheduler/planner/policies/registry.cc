#include "scheduler/planner/policies/registry.h"

#include "scheduler/planner/policies/policies.h"

namespace hexad {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<PlannerPolicy> (*make)();
};

constexpr Entry kPolicies[] = {
    {"wf_fcfs", MakeWorkflowFcfs},
    {"call_fcfs", MakeCallFcfs},
};

}  // namespace

std::unique_ptr<PlannerPolicy> MakePlannerPolicy(std::string_view name) {
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make();
  }
  return nullptr;
}

std::vector<std::string_view> PlannerPolicyNames() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

}  // namespace hexad
