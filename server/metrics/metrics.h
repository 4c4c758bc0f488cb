#pragma once

// What /metrics shows: vLLM's names, labels, types and buckets, so that dashboards, autoscalers and
// the Gateway API inference extension made for vLLM work unchanged, plus hexad_*.
// The committed list is tests/server/metrics/exposition.golden.
//
// Thread-safe. Every On/Set call is a few atomic additions or short uncontended locks, none waits
// for a scrape longer than it takes to copy one histogram. Times are in seconds.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "scheduler/step/request.h"

namespace hexad {

// Of vllm:cache_config_info and the engine label.
struct ModelMetricsOptions {
  std::string engine = "0";           // the replica's index, as vLLM counts engines
  int32_t max_context_tokens = 8192;  // bounds the buckets that count tokens
  int64_t block_tokens = 16;
  int64_t num_blocks = 0;
  std::string cache_type = "f16";
};

// One call, or one choice of it, that has ended. Times that do not apply are negative and are not
// counted: a call refused in the queue has no prefill time.
struct RequestMetrics {
  FinishReason reason = FinishReason::kStop;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, not computed
  int32_t output_tokens = 0;
  int32_t num_choices = 1;        // n of the call
  int32_t max_tokens = -1;        // as the client asked; -1: it did not
  double queue_seconds = -1;      // arrival to first scheduled
  double prefill_seconds = -1;    // first scheduled to first token
  double decode_seconds = -1;     // first token to last
  double inference_seconds = -1;  // first scheduled to last token
  double e2e_seconds = -1;        // arrival to end
};

class ModelMetrics {
 public:
  virtual ~ModelMetrics() = default;

  // The state of the replica, after a step or an admission. kv_usage in [0, 1].
  virtual void SetQueue(int64_t running, int64_t waiting, double kv_usage) = 0;
  // One step: prompt tokens computed in it, and sequences that it decodes.
  virtual void OnStep(int64_t prompt_tokens, int64_t decode_rows) = 0;
  // Tokens of answers; over time the sum of what the clients see as completion tokens.
  virtual void OnGenerated(int64_t tokens) = 0;
  // One admission: prompt tokens looked up in the prefix cache and those found.
  virtual void OnPrefixLookup(int64_t queried_tokens, int64_t hit_tokens) = 0;
  virtual void OnPreemption(int64_t count = 1) = 0;
  virtual void OnFirstToken(double seconds) = 0;
  virtual void OnInterToken(double seconds) = 0;
  // Also counts the prompt, by source (computed here or found in the cache): at the end, so that a
  // preempted call counts once; a call that never finished its prefill does not count.
  virtual void OnRequestDone(const RequestMetrics& request) = 0;
};

class Metrics final {
 public:
  struct Options {
    std::string version;   // of hexad_build_info
    std::string revision;  // empty: unknown
  };
  explicit Metrics(const Options& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Lives as long as this object. The same (name, engine) gives the same one; options are those of
  // the first call.
  ModelMetrics& Model(std::string_view model_name, const ModelMetricsOptions& options = {});

  // One answered request. `route` is the matched pattern ("/v1/chat/completions"), not the path;
  // past 256 different ones they count as "other". gRPC methods count with their full name.
  void OnHttpRequest(std::string_view route, int status);
  void OnClientDisconnected();

  // The Prometheus text format 0.0.4. Content-Type: kContentType. Any thread.
  std::string Render();
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hexad
