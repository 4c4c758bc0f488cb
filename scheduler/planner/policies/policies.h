#pragma once

// One factory a policy file; registry.cc lists them.

#include <memory>

#include "scheduler/planner/plan_types.h"

namespace hexad {

// Workflow first come, first served: calls run in the order in which their workflows arrived
// (papers: HexAGenT's wf-FCFS baseline and fallback order), on the worker with the least work.
std::unique_ptr<PlannerPolicy> MakeWorkflowFcfs();

// Call first come, first served: what a server without workflows does.
std::unique_ptr<PlannerPolicy> MakeCallFcfs();

}  // namespace hexad
