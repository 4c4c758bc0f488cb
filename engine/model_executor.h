#pragma once

// An Executor over any Model of the host: a thread that takes plans from a queue in order, so that
// the next one may be planned and submitted while one runs. What the CPU executor and the reference
// executor share; each is options and a factory.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/executor.h"
#include "engine/executor_slots.h"
#include "engine/models/model.h"
#include "engine/sampling/sampler.h"
#include "kernels/thread_team.h"

namespace hexad {

class ModelExecutor final : public Executor {
 public:
  struct Parts {
    ModelShape shape;
    std::vector<uint32_t> pool_blocks;
    std::unique_ptr<ThreadTeam> team;  // used by the model and for sampling
    std::unique_ptr<Model> model;
    bool record_digests = false;  // RowResult::logits_digest
  };
  explicit ModelExecutor(Parts parts);
  ~ModelExecutor() override;

  const ModelShape& shape() const override { return parts_.shape; }
  const std::vector<uint32_t>& pool_blocks() const override { return parts_.pool_blocks; }
  void Submit(StepPlan plan, Done done) override;

 private:
  struct Submitted {
    StepPlan plan;
    Done done;
  };
  void Run();
  absl::StatusOr<StepResult> Execute(const StepPlan& plan);
  absl::StatusOr<StepResult> Compute(const StepPlan& plan);
  static SamplingContext ContextOf(const ExecutorSlots::Work& work);
  // Whether the row needs no logits but the id of the greatest. The same before and after Forward.
  bool OnlyBest(const ExecutorSlots::Work& work) const;
  void Sample(const ForwardResult& forward, StepResult& result);

  Parts parts_;
  ExecutorSlots slots_;            // of the executor's thread, as all below
  std::vector<Sampler> samplers_;  // of each thread of the team
  std::vector<ExecutorSlots::Work> work_;
  std::vector<TokenId> tokens_;
  std::vector<ForwardSequence> sequences_;
  std::vector<size_t> sampled_;  // entries of work_ that have logits

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Submitted> queue_;  // guarded by mutex_
  bool stopping_ = false;        // guarded by mutex_
  std::thread thread_;           // last: starts when all else is there
};

// The digest of a row of logits: equal for equal bits, for tests of bit-identity.
uint64_t LogitsDigest(std::span<const float> logits);

}  // namespace hexad
