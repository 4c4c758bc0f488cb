#pragma once

// A Serving whose calls a test answers: by a script on a thread of its own, or by hand.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/serving/serving.h"
#include "tests/server/http/http_fixture.h"

namespace hexad {

class FakeServing final : public Serving {
 public:
  struct Started {
    CallId id{};
    GenerateCall call;
    std::shared_ptr<TokenSink> sink;
  };

  ~FakeServing() override { Join(); }

  std::vector<ModelInfo> ListModels() const override {
    return {{"org/model", 1700000000, 8192}, {"small", 1700000001, 512}};
  }
  CallId Start(GenerateCall call, std::shared_ptr<TokenSink> sink) override {
    std::lock_guard lock(mutex_);
    const CallId id{next_id_++};
    if (script) {
      threads_.emplace_back([run = script, call, sink = std::move(sink)] { run(call, *sink); });
      calls.Put(Started{id, std::move(call), nullptr});
    } else {
      calls.Put(Started{id, std::move(call), std::move(sink)});
    }
    return id;
  }
  void Cancel(CallId call) override { cancelled.Put(call); }
  ServingState state() const override { return current; }

  void Join() {
    std::lock_guard lock(mutex_);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Set before a request is sent.
  std::function<void(const GenerateCall&, TokenSink&)> script;
  std::atomic<ServingState> current{ServingState::kReady};
  Inbox<Started> calls;
  Inbox<CallId> cancelled;

 private:
  std::mutex mutex_;
  uint64_t next_id_ = 1;
  std::vector<std::thread> threads_;
};

}  // namespace hexad
