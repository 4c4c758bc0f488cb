#pragma once

// Ids that cross modules. Ids, never pointers.

#include <cstdint>

namespace hexad {

enum class RequestId : uint64_t {};   // one sequence at one replica; unique for its lifetime
enum class CallId : uint64_t {};      // one client call; n > 1 choices are n requests
enum class WorkflowId : uint64_t {};  // one workflow of one tenant
enum class WorkerId : uint32_t {};    // one replica that the planner knows
enum class StepId : uint64_t {};      // consecutive per executor, from 1
enum class SlotId : int32_t {};       // a persistent row of executor state

}  // namespace hexad
