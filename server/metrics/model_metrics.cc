#include "server/metrics/model_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace hexad {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;
using Buckets = Histogram::BucketBoundaries;

// vLLM's boundaries (vllm/v1/metrics/loggers.py): dashboards compare them across servers.
const Buckets kFirstTokenBuckets = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                    0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                    20,    40,    80,   160,  640,  2560};
const Buckets kTokenTimeBuckets = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                   0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const Buckets kPhaseBuckets = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                               30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const Buckets kChoiceBuckets = {1, 2, 5, 10, 20};
const Buckets kIterationBuckets = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

// 1, 2, 5, 10, 20, 50, ... up to `max`, as vLLM's build_1_2_5_buckets.
Buckets TokenCountBuckets(int32_t max) {
  Buckets buckets;
  for (double decade = 1;; decade *= 10) {
    for (const double mantissa : {1.0, 2.0, 5.0}) {
      if (mantissa * decade > std::max(max, 1)) return buckets;
      buckets.push_back(mantissa * decade);
    }
  }
}

Counter& AddCounter(Registry& registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}
Gauge& AddGauge(Registry& registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}
Histogram& AddHistogram(Registry& registry, const char* name, const char* help,
                        const Labels& labels, const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
}

Labels With(Labels labels, const char* name, std::string value) {
  labels[name] = std::move(value);
  return labels;
}

void ObserveKnown(Histogram& histogram, double value) {
  if (value >= 0 && std::isfinite(value)) histogram.Observe(value);
}

class VllmModelMetrics final : public ModelMetrics {
 public:
  VllmModelMetrics(const Labels& labels, const ModelMetricsOptions& options, Registry& registry);

  void SetQueue(int64_t running, int64_t waiting, double kv_usage) override {
    running_.Set(static_cast<double>(running));
    waiting_.Set(static_cast<double>(waiting));
    kv_usage_.Set(kv_usage);
  }
  void OnStep(int64_t prompt_tokens, int64_t decode_rows) override {
    ObserveKnown(iteration_tokens_, static_cast<double>(prompt_tokens + decode_rows));
  }
  void OnGenerated(int64_t tokens) override {
    if (tokens > 0) generation_tokens_.Increment(static_cast<double>(tokens));
  }
  void OnPrefixLookup(int64_t queried_tokens, int64_t hit_tokens) override {
    if (queried_tokens > 0) prefix_queries_.Increment(static_cast<double>(queried_tokens));
    if (hit_tokens > 0) prefix_hits_.Increment(static_cast<double>(hit_tokens));
  }
  void OnPreemption(int64_t count) override {
    if (count > 0) preemptions_.Increment(static_cast<double>(count));
  }
  void OnFirstToken(double seconds) override { ObserveKnown(first_token_, seconds); }
  void OnInterToken(double seconds) override { ObserveKnown(inter_token_, seconds); }
  void OnRequestDone(const RequestMetrics& request) override;

 private:
  Gauge& running_;
  Gauge& waiting_;
  Gauge& kv_usage_;
  Counter& prompt_tokens_;
  Counter& generation_tokens_;
  Counter& prompt_tokens_cached_;
  Counter& prompt_computed_;
  Counter& prompt_from_cache_;
  Counter& prefix_queries_;
  Counter& prefix_hits_;
  Counter& preemptions_;
  std::array<Counter*, 4> success_{};  // by FinishReason
  Histogram& first_token_;
  Histogram& inter_token_;
  Histogram& time_per_output_token_;
  Histogram& e2e_;
  Histogram& queue_;
  Histogram& inference_;
  Histogram& prefill_;
  Histogram& decode_;
  Histogram& request_prompt_tokens_;
  Histogram& request_generation_tokens_;
  Histogram& request_max_generation_tokens_;
  Histogram& params_n_;
  Histogram& params_max_tokens_;
  Histogram& iteration_tokens_;
};

constexpr char kBySource[] = "vllm:prompt_tokens_by_source_total";
constexpr char kBySourceHelp[] = "Prompt tokens by where their KV came from.";

VllmModelMetrics::VllmModelMetrics(const Labels& labels, const ModelMetricsOptions& options,
                                   Registry& r)
    : running_(AddGauge(r, "vllm:num_requests_running", "Requests in the running batch.", labels)),
      waiting_(AddGauge(r, "vllm:num_requests_waiting", "Requests waiting to be run.", labels)),
      kv_usage_(AddGauge(r, "vllm:kv_cache_usage_perc", "KV cache in use, 1 is all.", labels)),
      prompt_tokens_(AddCounter(r, "vllm:prompt_tokens_total", "Prompt tokens processed.", labels)),
      generation_tokens_(
          AddCounter(r, "vllm:generation_tokens_total", "Tokens generated.", labels)),
      prompt_tokens_cached_(AddCounter(r, "vllm:prompt_tokens_cached_total",
                                       "Prompt tokens found in a cache.", labels)),
      prompt_computed_(
          AddCounter(r, kBySource, kBySourceHelp, With(labels, "source", "local_compute"))),
      prompt_from_cache_(
          AddCounter(r, kBySource, kBySourceHelp, With(labels, "source", "local_cache_hit"))),
      prefix_queries_(AddCounter(r, "vllm:prefix_cache_queries_total",
                                 "Tokens looked up in the prefix cache.", labels)),
      prefix_hits_(AddCounter(r, "vllm:prefix_cache_hits_total",
                              "Tokens found in the prefix cache.", labels)),
      preemptions_(AddCounter(r, "vllm:num_preemptions_total", "Preemptions.", labels)),
      first_token_(AddHistogram(r, "vllm:time_to_first_token_seconds", "Arrival to first token.",
                                labels, kFirstTokenBuckets)),
      inter_token_(AddHistogram(r, "vllm:inter_token_latency_seconds", "One token to the next.",
                                labels, kTokenTimeBuckets)),
      time_per_output_token_(AddHistogram(r, "vllm:request_time_per_output_token_seconds",
                                          "Mean time between the tokens of a request.", labels,
                                          kTokenTimeBuckets)),
      e2e_(AddHistogram(r, "vllm:e2e_request_latency_seconds", "Arrival to end.", labels,
                        kPhaseBuckets)),
      queue_(AddHistogram(r, "vllm:request_queue_time_seconds", "Arrival to first scheduled.",
                          labels, kPhaseBuckets)),
      inference_(AddHistogram(r, "vllm:request_inference_time_seconds",
                              "First scheduled to last token.", labels, kPhaseBuckets)),
      prefill_(AddHistogram(r, "vllm:request_prefill_time_seconds",
                            "First scheduled to first token.", labels, kPhaseBuckets)),
      decode_(AddHistogram(r, "vllm:request_decode_time_seconds", "First token to last.", labels,
                           kPhaseBuckets)),
      request_prompt_tokens_(AddHistogram(r, "vllm:request_prompt_tokens",
                                          "Prompt tokens of a request.", labels,
                                          TokenCountBuckets(options.max_context_tokens))),
      request_generation_tokens_(AddHistogram(r, "vllm:request_generation_tokens",
                                              "Tokens generated for a request.", labels,
                                              TokenCountBuckets(options.max_context_tokens))),
      request_max_generation_tokens_(
          AddHistogram(r, "vllm:request_max_num_generation_tokens",
                       "Most tokens generated for a choice of a request.", labels,
                       TokenCountBuckets(options.max_context_tokens))),
      params_n_(
          AddHistogram(r, "vllm:request_params_n", "Choices asked for.", labels, kChoiceBuckets)),
      params_max_tokens_(AddHistogram(r, "vllm:request_params_max_tokens",
                                      "Limit of tokens asked for.", labels,
                                      TokenCountBuckets(options.max_context_tokens))),
      iteration_tokens_(AddHistogram(r, "vllm:iteration_tokens_total",
                                     "Tokens computed in one step.", labels, kIterationBuckets)) {
  // Exposed from the start, at 0, like every series: a panel has a value before the first event.
  AddCounter(r, kBySource, kBySourceHelp, With(labels, "source", "external_kv_transfer"));
  const std::array<const char*, 4> reasons = {"stop", "length", "abort", "error"};
  for (size_t i = 0; i < reasons.size(); ++i) {
    success_[i] = &AddCounter(r, "vllm:request_success_total", "Requests ended, by reason.",
                              With(labels, "finished_reason", reasons[i]));
  }
  Labels info = labels;
  info["block_size"] = std::to_string(options.block_tokens);
  info["num_gpu_blocks"] = std::to_string(options.num_blocks);
  info["cache_dtype"] = options.cache_type;
  info["enable_prefix_caching"] = "True";
  AddGauge(r, "vllm:cache_config_info", "Shape of the KV cache, in labels.", info).Set(1);
}

void VllmModelMetrics::OnRequestDone(const RequestMetrics& request) {
  success_[static_cast<size_t>(request.reason) % success_.size()]->Increment();
  if (request.prefill_seconds >= 0) {
    const int32_t cached = std::clamp(request.cached_tokens, 0, std::max(request.prompt_tokens, 0));
    prompt_tokens_.Increment(std::max(request.prompt_tokens, 0));
    prompt_tokens_cached_.Increment(cached);
    prompt_from_cache_.Increment(cached);
    prompt_computed_.Increment(std::max(request.prompt_tokens, 0) - cached);
  }
  ObserveKnown(request_prompt_tokens_, request.prompt_tokens);
  ObserveKnown(request_generation_tokens_, request.output_tokens);
  ObserveKnown(request_max_generation_tokens_, request.output_tokens);
  ObserveKnown(params_n_, request.num_choices);
  ObserveKnown(params_max_tokens_, request.max_tokens);
  ObserveKnown(queue_, request.queue_seconds);
  ObserveKnown(prefill_, request.prefill_seconds);
  ObserveKnown(decode_, request.decode_seconds);
  ObserveKnown(inference_, request.inference_seconds);
  ObserveKnown(e2e_, request.e2e_seconds);
  if (request.output_tokens > 1 && request.decode_seconds >= 0) {
    time_per_output_token_.Observe(request.decode_seconds / (request.output_tokens - 1));
  }
}

}  // namespace

std::unique_ptr<ModelMetrics> MakeModelMetrics(std::string_view model_name,
                                               const ModelMetricsOptions& options,
                                               Registry& registry) {
  const Labels labels = {{"model_name", std::string(model_name)}, {"engine", options.engine}};
  return std::make_unique<VllmModelMetrics>(labels, options, registry);
}

}  // namespace hexad
