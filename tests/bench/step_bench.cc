// What a decode step costs the replica's loop: Plan + On(StepDone) + TakeEvents, with two steps in
// flight. Arguments: running sequences (256), context tokens of each (131072), steps (1000).

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "scheduler/batch/batcher.h"

namespace hexad {
namespace {

// Of this thread, so that a busy machine does not count.
double CpuMicroseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

StepResult MakeResult(const StepPlan& plan, const std::vector<RequestId>& requests) {
  StepResult result;
  result.step = plan.step;
  result.device_time = absl::Milliseconds(30);
  for (const Row& row : plan.rows) {
    if (!row.sample) continue;
    SampledToken token;
    token.token = TokenId{17};
    result.rows.push_back({row.slot, requests[static_cast<size_t>(row.slot)], {token}, 0});
  }
  return result;
}

int Run(int32_t running, int32_t context, int32_t steps) {
  KvLayout layout;  // a full group and a window group
  layout.groups.resize(2);
  layout.groups[1].kind = GroupKind::kWindow;
  layout.groups[1].window_tokens = 1024;
  BatcherConfig config;
  config.max_running = running;
  config.max_step_tokens = 1 << 30;
  config.step_target = absl::Hours(100);
  const uint32_t blocks_each = static_cast<uint32_t>(context + steps + running + 64) / 16 + 2;
  Batcher batcher(config, layout, {running * blocks_each, running * blocks_each}, CostModel());

  const absl::Time now = absl::UnixEpoch();
  std::vector<RequestId> requests(running);
  for (int32_t i = 0; i < running; ++i) {
    RequestSpec spec;
    spec.id = RequestId{static_cast<uint64_t>(i)};
    spec.stop.max_new_tokens = steps + running + 32;
    spec.stop.stop_tokens = {TokenId{1}, TokenId{2}};
    for (int32_t t = 0; t < context; ++t) spec.prompt.push_back(TokenId{i + t * 7});
    batcher.On(Submit{std::move(spec)}, now);
    const StepPlan plan = *batcher.Plan(now);
    for (const SlotOpen& open : plan.opened)
      requests[static_cast<size_t>(open.slot)] = open.request;
    batcher.On(StepDone{MakeResult(plan, requests)}, now);
  }

  std::deque<StepPlan> in_flight;
  in_flight.push_back(*batcher.Plan(now));
  std::vector<double> planning, applying, both;
  size_t rows = 0;
  for (int32_t i = 0; i < steps; ++i) {
    const double start = CpuMicroseconds();
    std::optional<StepPlan> plan = batcher.Plan(now);
    planning.push_back(CpuMicroseconds() - start);
    rows += plan->rows.size();
    in_flight.push_back(std::move(*plan));
    StepResult result = MakeResult(in_flight.front(), requests);
    in_flight.pop_front();
    const double done = CpuMicroseconds();
    batcher.On(StepDone{std::move(result)}, now);
    const std::vector<TokenEvent> events = batcher.TakeEvents();
    applying.push_back(CpuMicroseconds() - done);
    both.push_back(planning.back() + applying.back());
    if (events.size() < static_cast<size_t>(running)) return 1;
  }
  const auto percentile = [steps](std::vector<double>& values, int32_t percent) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(steps) * percent / 100];
  };
  std::printf(
      "%d running x %d tokens, %.1f rows a step: plan p50 %.1f us, apply p50 %.1f us, "
      "both p50 %.1f us, p99 %.1f us\n",
      running, context, static_cast<double>(rows) / steps, percentile(planning, 50),
      percentile(applying, 50), percentile(both, 50), percentile(both, 99));
  return 0;
}

}  // namespace
}  // namespace hexad

int main(int argc, char** argv) {
  const auto argument = [&](int i, int fallback) {
    return argc > i ? std::atoi(argv[i]) : fallback;
  };
  return hexad::Run(argument(1, 256), argument(2, 131072), argument(3, 1000));
}
