#include "tests/engine/testing/batcher_run.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace hexad {
namespace {

// Results come on the executor's thread and are taken by the test's.
class Results {
 public:
  void Put(absl::StatusOr<StepResult> result) {
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    wake_.notify_one();
  }
  absl::StatusOr<StepResult> Take() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !results_.empty(); });
    absl::StatusOr<StepResult> result = std::move(results_.front());
    results_.pop_front();
    return result;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<absl::StatusOr<StepResult>> results_;
};

class Runner {
 public:
  Runner(Batcher& batcher, Executor& executor, const std::vector<RequestSpec>& specs,
         const BatcherRunOptions& options)
      : batcher_(batcher), executor_(executor), specs_(specs), options_(options) {
    for (const RequestSpec& spec : specs) {
      prompt_tokens_[spec.id] = static_cast<int32_t>(spec.prompt.size());
    }
  }

  absl::StatusOr<BatcherRun> Run() {
    for (size_t turn = 0; finished_ < specs_.size() || !batcher_.idle(); ++turn) {
      if (turn > 100000) return absl::InternalError("the requests do not end");
      now_ += absl::Milliseconds(10);
      if (const absl::Status status = SubmitArriving(turn); !status.ok()) return status;
      while (auto plan = batcher_.Plan(now_)) SubmitPlan(*std::move(plan));
      if (!in_flight_.empty()) {
        if (const absl::Status status = TakeResult(); !status.ok()) return status;
      }
      TakeEvents();
    }
    return std::move(run_);
  }

 private:
  using Sample = std::pair<RequestId, int32_t>;  // the output that a row's logits are for

  absl::Status SubmitArriving(size_t turn) {
    while (submitted_ < specs_.size()) {
      if (options_.arrive_every_turns > 0 && submitted_ * options_.arrive_every_turns > turn) break;
      if (batcher_.On(Submit{specs_[submitted_++]}, now_) != Outcome::kDone) {
        return absl::InternalError("a request is refused");
      }
    }
    return absl::OkStatus();
  }

  void SubmitPlan(StepPlan plan) {
    for (const SlotOpen& open : plan.opened) requests_[open.slot] = open.request;
    std::vector<Sample> samples;
    for (const Row& row : plan.rows) {
      ++run_.row_tokens[row.num_tokens];
      const RequestId request = requests_.at(row.slot);
      const int32_t output = row.position + row.num_tokens - prompt_tokens_.at(request);
      if (row.sample) samples.push_back({request, output});
    }
    run_.most_rows = std::max(run_.most_rows, plan.rows.size());
    in_flight_.push_back(std::move(samples));
    executor_.Submit(std::move(plan), [results = results_](absl::StatusOr<StepResult> result) {
      results->Put(std::move(result));
    });
  }

  absl::Status TakeResult() {
    auto result = results_->Take();
    const std::vector<Sample> samples = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (!result.ok()) return result.status();
    if (result->rows.size() != samples.size()) return absl::InternalError("samples are missing");
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto& [request, output] = samples[i];
      const uint64_t digest = result->rows[i].logits_digest;
      const auto [entry, fresh] = run_.answers[request].digests.insert({output, digest});
      if (!fresh && entry->second != digest) {
        return absl::InternalError("logits computed again are others");
      }
    }
    result->device_time = options_.device_time;
    batcher_.On(StepDone{*std::move(result)}, now_);
    batcher_.CheckInvariants();
    return absl::OkStatus();
  }

  void TakeEvents() {
    for (TokenEvent& event : batcher_.TakeEvents()) {
      BatcherRun::Answer& answer = run_.answers[event.request];
      for (const SampledToken& token : event.tokens) answer.tokens.push_back(token.token);
      if (event.kind != TokenEvent::Kind::kFinished) continue;
      answer.reason = event.reason;
      ++finished_;
    }
  }

  Batcher& batcher_;
  Executor& executor_;
  const std::vector<RequestSpec>& specs_;
  const BatcherRunOptions options_;
  std::map<RequestId, int32_t> prompt_tokens_;
  std::map<SlotId, RequestId> requests_;
  // Shared with the executor, which may still be computing when an error ends the run.
  std::shared_ptr<Results> results_ = std::make_shared<Results>();
  std::deque<std::vector<Sample>> in_flight_;
  absl::Time now_ = absl::UnixEpoch();
  size_t submitted_ = 0;
  size_t finished_ = 0;
  BatcherRun run_;
};

}  // namespace

absl::StatusOr<BatcherRun> RunBatcher(Batcher& batcher, Executor& executor,
                                      const std::vector<RequestSpec>& specs,
                                      const BatcherRunOptions& options) {
  return Runner(batcher, executor, specs, options).Run();
}

}  // namespace hexad
