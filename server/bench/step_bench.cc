#include "server/bench/step_bench.h"

#include <time.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scheduler/batch/batcher.h"

namespace hexad {
namespace {

double CpuMicroseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

StepBenchTimes Summarise(std::vector<double> values) {
  StepBenchTimes times;
  times.steps = static_cast<int64_t>(values.size());
  if (values.empty()) return times;
  std::sort(values.begin(), values.end());
  times.mean = std::accumulate(values.begin(), values.end(), 0.0) / values.size();
  times.p50 = values[values.size() / 2];
  times.p99 = values[values.size() * 99 / 100];
  times.max = values.back();
  return times;
}

uint64_t Mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

constexpr TokenId kToken{17};  // what is sampled

class StepBench final {
 public:
  explicit StepBench(const StepBenchOptions& options)
      : options_(options), batcher_(Config(), Layout(), Pools(), CostModel()) {
    report_.options = options;
    requests_.resize(static_cast<size_t>(options.running));
    conversations_.resize(static_cast<size_t>(options.running));
  }

  StepBenchReport Run() {
    Fill();
    in_flight_.push_back(*batcher_.Plan(now_));
    submit_.clear();
    for (int32_t i = 0; i < options_.steps; ++i) Step();
    report_.submit = Summarise(std::move(submit_));
    report_.plan = Summarise(std::move(plan_));
    report_.apply = Summarise(std::move(apply_));
    report_.both = Summarise(std::move(both_));
    report_.quiet = Summarise(std::move(quiet_));
    report_.changes = Summarise(std::move(changes_));
    report_.rows_per_step = static_cast<double>(rows_) / options_.steps;
    return report_;
  }

 private:
  struct Conversation {
    std::vector<TokenId> later;  // all after the first prompt
  };

  KvLayout Layout() const {  // a full group and a window group
    KvLayout layout;
    layout.groups.resize(2);
    layout.groups[1].kind = GroupKind::kWindow;
    layout.groups[1].window_tokens = 1024;
    return layout;
  }

  BatcherConfig Config() const {
    BatcherConfig config;
    config.max_running = options_.running;
    config.max_waiting = options_.running;
    config.max_step_tokens = 1 << 30;
    config.step_target = absl::Hours(100);
    // Prompts whole, so that nothing of them is left for the steps that are measured.
    config.max_chunk_tokens = 1 << 30;
    config.first_chunk_tokens = 0;
    return config;
  }

  std::vector<uint32_t> Pools() const {
    int32_t growth = options_.steps;
    if (options_.turn_tokens > 0) {
      const int32_t turns = options_.steps / options_.turn_tokens + 2;
      growth = turns * (options_.turn_tokens + options_.turn_prompt_tokens);
    }
    const uint32_t running = static_cast<uint32_t>(options_.running);
    const uint32_t tokens = options_.context_tokens + growth + options_.running + 64;
    return {running * (tokens / 16 + 2), running * std::min(tokens / 16 + 2, 512u)};
  }

  // One after the other, so that the sequences cross their block boundaries at different steps.
  void Fill() {
    for (int32_t i = 0; i < options_.running; ++i) {
      // Those admitted first end first, so that about as many are left to each as between turns.
      const int32_t left =
          options_.turn_tokens > 0
              ? options_.running + 1 +
                    static_cast<int32_t>(int64_t{options_.turn_tokens} * i / options_.running)
              : options_.steps + options_.running + 32;
      SubmitTurn(i, left);
      const StepPlan plan = *batcher_.Plan(now_);
      NoteSlots(plan);
      batcher_.On(StepDone{MakeResult(plan)}, now_);
      batcher_.TakeEvents();
    }
  }

  // The keys of the first prompt are made up: a real one is hashed at the front end.
  void SubmitTurn(int32_t conversation, int32_t output_tokens) {
    Conversation& talk = conversations_[static_cast<size_t>(conversation)];
    RequestSpec spec;
    spec.id = RequestId{++turns_ << 32 | static_cast<uint32_t>(conversation)};
    spec.arrival = now_;
    spec.stop.max_new_tokens = output_tokens;
    spec.stop.stop_tokens = {TokenId{1}, TokenId{2}};
    spec.prompt.resize(static_cast<size_t>(options_.context_tokens));
    for (int32_t i = 0; i < options_.context_tokens; ++i) {
      spec.prompt[static_cast<size_t>(i)] = TokenId{conversation + i * 7};
    }
    spec.prompt.insert(spec.prompt.end(), talk.later.begin(), talk.later.end());
    for (int32_t unit = 0; unit < options_.context_tokens / kUnitTokens; ++unit) {
      const uint64_t low =
          Mix(uint64_t{1} << 60 | static_cast<uint64_t>(conversation) << 20 | unit);
      spec.unit_keys.push_back({Mix(low + 1), low});
    }
    const double start = CpuMicroseconds();
    batcher_.On(Submit{std::move(spec)}, now_);
    submit_.push_back(CpuMicroseconds() - start);
  }

  void NoteSlots(const StepPlan& plan) {
    for (const SlotOpen& open : plan.opened) {
      requests_[static_cast<size_t>(open.slot)] = open.request;
    }
  }

  StepResult MakeResult(const StepPlan& plan) const {
    StepResult result;
    result.step = plan.step;
    result.device_time = absl::Milliseconds(30);
    for (const Row& row : plan.rows) {
      if (!row.sample) continue;
      SampledToken token;
      token.token = kToken;
      result.rows.push_back({row.slot, requests_[static_cast<size_t>(row.slot)], {token}, 0});
    }
    return result;
  }

  void Step() {
    const double start = CpuMicroseconds();
    std::optional<StepPlan> plan = batcher_.Plan(now_);
    plan_.push_back(CpuMicroseconds() - start);
    const size_t admitted = plan->opened.size();
    rows_ += plan->rows.size();
    in_flight_.push_back(std::move(*plan));
    // The slots are those of the results, which come before the plan's own.
    StepResult result = MakeResult(in_flight_.front());
    in_flight_.pop_front();
    NoteSlots(in_flight_.back());

    const double done = CpuMicroseconds();
    batcher_.On(StepDone{std::move(result)}, now_);
    const std::vector<TokenEvent> events = batcher_.TakeEvents();
    apply_.push_back(CpuMicroseconds() - done);
    both_.push_back(plan_.back() + apply_.back());

    const size_t ended = NextTurns(events);
    report_.admitted += static_cast<int64_t>(admitted);
    report_.ended += static_cast<int64_t>(ended);
    (admitted + ended > 0 ? changes_ : quiet_).push_back(both_.back());
  }

  size_t NextTurns(const std::vector<TokenEvent>& events) {
    size_t ended = 0;
    for (const TokenEvent& event : events) {
      if (event.kind != TokenEvent::Kind::kFinished) continue;
      ++ended;
      const uint32_t conversation = static_cast<uint32_t>(event.request);
      Conversation& talk = conversations_[conversation];
      talk.later.insert(talk.later.end(), event.output_tokens, kToken);
      talk.later.insert(talk.later.end(), options_.turn_prompt_tokens,
                        TokenId{100 + static_cast<int32_t>(conversation)});
      report_.prompt_tokens += event.prompt_tokens;
      report_.cached_tokens += event.cached_tokens;
      SubmitTurn(static_cast<int32_t>(conversation), options_.turn_tokens);
    }
    return ended;
  }

  const StepBenchOptions options_;
  const absl::Time now_ = absl::UnixEpoch();
  Batcher batcher_;
  std::vector<RequestId> requests_;  // by slot
  std::vector<Conversation> conversations_;
  std::deque<StepPlan> in_flight_;
  uint64_t turns_ = 0;
  size_t rows_ = 0;
  std::vector<double> plan_, apply_, both_, quiet_, changes_, submit_;
  StepBenchReport report_;
};

std::string TimesJson(const StepBenchTimes& times) {
  return absl::StrFormat(R"({"steps": %d, "mean": %.2f, "p50": %.2f, "p99": %.2f, "max": %.2f})",
                         times.steps, times.mean, times.p50, times.p99, times.max);
}

std::string ReportJson(const StepBenchReport& report) {
  const StepBenchOptions& options = report.options;
  return absl::StrFormat(
      "  {\"running\": %d, \"context_tokens\": %d, \"steps\": %d, \"turn_tokens\": %d,\n"
      "   \"rows_per_step\": %.1f, \"ended\": %d, \"admitted\": %d, \"cached_share\": %.4f,\n"
      "   \"plan_us\": %s,\n   \"apply_us\": %s,\n   \"both_us\": %s,\n   \"quiet_us\": %s,\n"
      "   \"changes_us\": %s,\n   \"submit_us\": %s}",
      options.running, options.context_tokens, options.steps, options.turn_tokens,
      report.rows_per_step, report.ended, report.admitted,
      report.cached_tokens / std::max(1.0, static_cast<double>(report.prompt_tokens)),
      TimesJson(report.plan), TimesJson(report.apply), TimesJson(report.both),
      TimesJson(report.quiet), TimesJson(report.changes), TimesJson(report.submit));
}

}  // namespace

StepBenchReport RunStepBench(const StepBenchOptions& options) { return StepBench(options).Run(); }

std::vector<StepBenchOptions> StandardStepBenches() {
  return {{.running = 256},
          {.running = 256, .turn_tokens = 1024},
          {.running = 1024, .steps = 2000},
          {.running = 1024, .steps = 2000, .turn_tokens = 1024}};
}

std::string StepBenchTableHeader() {
  return "running  context   turn  steps  plan p50  apply p50  both p50  both p99  both max  "
         "with changes p50 / max   (us)\n";
}

std::string StepBenchTableRow(const StepBenchReport& report) {
  const StepBenchOptions& options = report.options;
  return absl::StrFormat("%7d %8d %6d %6d %9.1f %10.1f %9.1f %9.1f %9.1f %10.1f / %.1f of %d\n",
                         options.running, options.context_tokens, options.turn_tokens,
                         options.steps, report.plan.p50, report.apply.p50, report.both.p50,
                         report.both.p99, report.both.max, report.changes.p50, report.changes.max,
                         report.changes.steps);
}

std::string StepBenchJson(const std::vector<StepBenchReport>& reports) {
  return absl::StrCat("{\"step\": [\n",
                      absl::StrJoin(reports, ",\n",
                                    [](std::string* out, const StepBenchReport& report) {
                                      out->append(ReportJson(report));
                                    }),
                      "\n]}\n");
}

}  // namespace hexad
