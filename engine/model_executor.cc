#include "engine/model_executor.h"

#include <bit>
#include <chrono>
#include <exception>
#include <new>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace hexad {

uint64_t LogitsDigest(std::span<const float> logits) {
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a over words, with a shift to mix high bits down
  for (const float logit : logits) {
    digest = (digest ^ std::bit_cast<uint32_t>(logit)) * 0x100000001b3;
    digest ^= digest >> 32;
  }
  return digest;
}

ModelExecutor::ModelExecutor(Parts parts)
    : parts_(std::move(parts)),
      slots_(parts_.shape, parts_.pool_blocks),
      samplers_(static_cast<size_t>(parts_.team->threads())),
      thread_([this] { Run(); }) {}

ModelExecutor::~ModelExecutor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ModelExecutor::Submit(StepPlan plan, Done done) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(plan), std::move(done)});
  }
  wake_.notify_one();
}

void ModelExecutor::Run() {
  while (true) {
    Submitted next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;  // stopping, and all plans are done
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next.done(Execute(next.plan));
  }
}

absl::StatusOr<StepResult> ModelExecutor::Execute(const StepPlan& plan) {
  try {
    return Compute(plan);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("step %d: out of memory", static_cast<uint64_t>(plan.step)));
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrFormat("step %d: %s", static_cast<uint64_t>(plan.step), error.what()));
  }
}

absl::StatusOr<StepResult> ModelExecutor::Compute(const StepPlan& plan) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Status applied = slots_.ApplyDiff(plan);
  if (!applied.ok()) return applied;
  const absl::Status resolved = slots_.Resolve(plan, work_, tokens_);
  if (!resolved.ok()) return resolved;
  for (const BlockCopy& copy : plan.copies) {
    parts_.model->CopyBlock(copy.group, static_cast<uint32_t>(copy.from),
                            static_cast<uint32_t>(copy.to));
  }
  StepResult result;
  result.step = plan.step;
  if (!work_.empty()) {
    sequences_.clear();
    for (const ExecutorSlots::Work& work : work_) {
      const auto& [slot, row] = work;
      sequences_.push_back({row->position, row->num_tokens, row->sample ? 1 : 0, slot->tables,
                            row->sample && OnlyBest(work)});
    }
    const absl::StatusOr<ForwardResult> forward = parts_.model->Forward({tokens_, sequences_});
    if (!forward.ok()) return forward.status();
    Sample(*forward, result);
  }
  result.device_time = absl::FromChrono(std::chrono::steady_clock::now() - start);
  return result;
}

SamplingContext ModelExecutor::ContextOf(const ExecutorSlots::Work& work) {
  SamplingContext context;
  context.position = static_cast<uint64_t>(work.row->position) + work.row->num_tokens;
  context.history = &work.slot->history;
  context.min_new_tokens = work.slot->min_new_tokens;
  context.masked_until_min = work.slot->masked_until_min;
  return context;
}

bool ModelExecutor::OnlyBest(const ExecutorSlots::Work& work) const {
  return !parts_.record_digests && Sampler::TakesTheBest(work.slot->sampling, ContextOf(work));
}

void ModelExecutor::Sample(const ForwardResult& forward, StepResult& result) {
  std::erase_if(work_, [](const ExecutorSlots::Work& work) { return !work.row->sample; });
  result.rows.resize(work_.size());
  sampled_.clear();
  for (size_t i = 0; i < work_.size(); ++i) {
    RowResult& answer = result.rows[i];
    answer.slot = work_[i].row->slot;
    answer.request = work_[i].slot->request;
    if (OnlyBest(work_[i])) {
      answer.tokens.push_back({.token = forward.best[i]});
    } else {
      sampled_.push_back(i);
    }
  }
  const auto vocabulary = static_cast<size_t>(parts_.shape.vocab_size);
  parts_.team->ParallelFor(
      static_cast<int64_t>(sampled_.size()), 1, [&](int64_t begin, int64_t end, int thread) {
        for (auto n = static_cast<size_t>(begin); n < static_cast<size_t>(end); ++n) {
          const ExecutorSlots::Work& work = work_[sampled_[n]];
          const std::span<const float> own = forward.logits.subspan(n * vocabulary, vocabulary);
          RowResult& answer = result.rows[sampled_[n]];
          answer.tokens.push_back(samplers_[static_cast<size_t>(thread)].Sample(
              own, work.slot->sampling, ContextOf(work)));
          if (parts_.record_digests) answer.logits_digest = LogitsDigest(own);
        }
      });
  for (size_t i = 0; i < work_.size(); ++i) {
    const TokenId token = result.rows[i].tokens.front().token;
    work_[i].slot->last_sampled = token;
    work_[i].slot->history.AddOutput(token);
  }
}

}  // namespace hexad
