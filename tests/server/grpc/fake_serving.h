#pragma once

// A Serving that does what the model's name says, on the caller's thread or on one of its own.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/serving/serving.h"

namespace hexad {

class FakeServing final : public Serving {
 public:
  ~FakeServing() override {
    for (std::thread& thread : threads_) thread.join();
  }

  std::vector<ModelInfo> ListModels() const override { return {{"now", 5, 2048}, {"held", 6, 1}}; }

  // now: three deltas of "tok " before Start returns. thread: the same from another thread.
  // held: accepted, then nothing until Cancel. flood: deltas until Cancel.
  // missing, broken: an error at once. late: an error after a delta.
  CallId Start(GenerateCall call, std::shared_ptr<TokenSink> sink) override {
    CallId id;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      id = static_cast<CallId>(++last_id_);
      calls_.push_back(call);
      sinks_[id] = sink;
    }
    const std::string model = call.model;
    if (model == "now") Answer(id, *sink, 3);
    if (model == "late") {
      sink->OnAccepted(1);
      sink->OnDelta(0, {"partial", {}, {}});
      End(id, absl::InternalError("secret detail"));
    }
    if (model == "missing") End(id, absl::NotFoundError("no model missing"));
    if (model == "broken") End(id, absl::InternalError("secret detail"));
    if (model == "full") End(id, absl::UnavailableError("queue full"));
    if (model == "held") sink->OnAccepted(1);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (model == "thread") {
      threads_.emplace_back([this, id, sink] { Answer(id, *sink, 40); });
    }
    if (model == "flood") threads_.emplace_back([this, id, sink] { Flood(id, *sink); });
    changed_.notify_all();
    return id;
  }

  void Cancel(CallId id) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      cancelled_.insert(id);
    }
    End(id, absl::CancelledError("cancelled"));
    changed_.notify_all();
  }

  ServingState state() const override { return ServingState::kReady; }

  void WaitForStarts(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return calls_.size() >= count; });
  }
  void WaitForCancels(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_.size() >= count; });
  }
  std::vector<GenerateCall> calls() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }
  size_t live() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return sinks_.size();
  }

 private:
  void Answer(CallId id, TokenSink& sink, int deltas) {
    sink.OnAccepted(7);
    for (int i = 0; i < deltas; ++i) {
      TextDelta delta;
      delta.text = "tok ";
      delta.tokens = {static_cast<TokenId>(i)};
      delta.logprobs = {{"tok ", -0.5f, {{"top", -0.25f}}}};
      sink.OnDelta(0, std::move(delta));
    }
    sink.OnFinish(0, FinishReason::kLength);
    End(id, absl::OkStatus(), {7, 4, deltas});
  }

  void Flood(CallId id, TokenSink& sink) {
    sink.OnAccepted(1);
    const std::string text(4096, 'x');
    for (;;) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (cancelled_.contains(id)) return;
      }
      sink.OnDelta(0, {text, {}, {}});
    }
  }

  // OnEnd exactly once.
  void End(CallId id, const absl::Status& status, const Usage& usage = {}) {
    std::shared_ptr<TokenSink> sink;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = sinks_.find(id);
      if (found == sinks_.end()) return;
      sink = std::move(found->second);
      sinks_.erase(found);
    }
    sink->OnEnd(status, usage);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t last_id_ = 0;
  std::vector<GenerateCall> calls_;
  std::map<CallId, std::shared_ptr<TokenSink>> sinks_;
  std::set<CallId> cancelled_;
  std::vector<std::thread> threads_;
};

}  // namespace hexad
