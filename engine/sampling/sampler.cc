#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sampling/philox.h"

namespace hexad {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr float kGreedyBelow = 1e-5f;
constexpr size_t kFirstBatchOfCandidates = 128;

bool InVocabulary(TokenId token, size_t vocabulary) {
  const auto id = static_cast<int32_t>(token);
  return id >= 0 && static_cast<size_t>(id) < vocabulary;
}

// The lowest id of the greatest logit; NaN never compares greater.
int32_t ArgMax(std::span<const float> logits) {
  float best = kImpossible;
  int32_t id = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best) {
      best = logits[i];
      id = static_cast<int32_t>(i);
    }
  }
  return id;
}

// exp((logit - max) / temperature) with NaN and the case inf - inf sorted out.
float Weight(float logit, float max, double inverse_temperature) {
  if (logit == max) return 1.0f;
  const auto scaled = static_cast<float>((static_cast<double>(logit) - max) * inverse_temperature);
  return scaled < 0.0f ? std::exp(scaled) : 0.0f;
}

bool Masks(const SamplingContext& context) {
  const int32_t output_tokens = context.history ? context.history->output_tokens() : 0;
  return output_tokens < context.min_new_tokens && !context.masked_until_min.empty();
}

bool Penalises(const SamplingContext& context) {
  return context.history != nullptr && !context.history->counts().empty();
}

bool IsGreedy(const SamplingParams& params) { return !(params.temperature >= kGreedyBelow); }

}  // namespace

bool Sampler::TakesTheBest(const SamplingParams& params, const SamplingContext& context) {
  return IsGreedy(params) && params.num_logprobs < 0 && params.logit_bias.empty() &&
         !Masks(context) && !Penalises(context);
}

std::span<const float> Sampler::Adjust(std::span<const float> logits, const SamplingParams& params,
                                       const SamplingContext& context) {
  const bool mask = Masks(context), penalise = Penalises(context);
  if (params.logit_bias.empty() && !mask && !penalise) return logits;

  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : params.logit_bias) {
    if (InVocabulary(token, logits.size())) adjusted_[static_cast<int32_t>(token)] += bias;
  }
  if (mask) {
    for (const TokenId token : context.masked_until_min) {
      if (InVocabulary(token, logits.size())) adjusted_[static_cast<int32_t>(token)] = kImpossible;
    }
  }
  if (penalise) {
    for (const auto& [token, count] : context.history->counts()) {
      if (!InVocabulary(token, logits.size())) continue;
      float& logit = adjusted_[static_cast<int32_t>(token)];
      logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
      if (count.in_output == 0) continue;
      logit -= static_cast<float>(count.in_output) * params.frequency_penalty;
      logit -= params.presence_penalty;
    }
  }
  return adjusted_;
}

int32_t Sampler::DrawFromAll(std::span<const float> logits, float max, double inverse_temperature,
                             double uniform) {
  weights_.resize(logits.size());
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = Weight(logits[i], max, inverse_temperature);
    total += weights_[i];
  }
  const double target = uniform * total;
  double sum = 0;
  int32_t last_possible = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] <= 0) continue;
    last_possible = static_cast<int32_t>(i);
    sum += weights_[i];
    if (sum > target) return last_possible;
  }
  return last_possible;
}

int32_t Sampler::DrawFromBest(std::span<const float> logits, float max, double inverse_temperature,
                              const SamplingParams& params, double uniform) {
  candidates_.clear();
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float weight = Weight(logits[i], max, inverse_temperature);
    if (weight <= 0 || weight < params.min_p) continue;  // the most likely token weighs 1
    candidates_.push_back({logits[i], static_cast<int32_t>(i)});
    total += weight;
  }
  size_t keep = candidates_.size();
  if (params.top_k > 0) keep = std::min(keep, static_cast<size_t>(params.top_k));
  // The best `sorted` candidates are in order; more are sorted only as top_p asks for them.
  size_t sorted = 0;
  const auto sort_up_to = [&](size_t wanted) {
    wanted = std::min(wanted, keep);
    const auto from = candidates_.begin() + static_cast<ptrdiff_t>(sorted);
    const auto to = candidates_.begin() + static_cast<ptrdiff_t>(wanted);
    if (to != candidates_.end()) std::nth_element(from, to, candidates_.end(), Before);
    std::sort(from, to, Before);
    sorted = wanted;
  };
  if (keep < candidates_.size()) {
    sort_up_to(keep);
    total = 0;
    for (size_t i = 0; i < keep; ++i) {
      total += Weight(candidates_[i].logit, max, inverse_temperature);
    }
  }
  weights_.clear();
  double sum = 0;
  const bool cut = params.top_p < 1.0f;
  const double enough = std::max(0.0, static_cast<double>(params.top_p)) * total;
  for (size_t i = 0; i < keep; ++i) {
    if (i >= sorted) sort_up_to(std::max(kFirstBatchOfCandidates, 4 * sorted));
    weights_.push_back(Weight(candidates_[i].logit, max, inverse_temperature));
    sum += weights_.back();
    if (cut && sum >= enough) break;
  }
  const double target = uniform * sum;
  double walked = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    walked += weights_[i];
    if (walked > target) return candidates_[i].id;
  }
  return weights_.empty() ? 0 : candidates_[weights_.size() - 1].id;
}

int32_t Sampler::Draw(std::span<const float> logits, const SamplingParams& params,
                      uint64_t position) {
  const int32_t best = ArgMax(logits);
  const float max = logits[best];
  if (IsGreedy(params) || !(max > kImpossible)) return best;
  const double uniform = UniformAt(params.seed, position);
  const double inverse_temperature = 1.0 / params.temperature;
  const bool all = params.top_k <= 0 && params.top_p >= 1.0f && params.min_p <= 0.0f;
  return all ? DrawFromAll(logits, max, inverse_temperature, uniform)
             : DrawFromBest(logits, max, inverse_temperature, params, uniform);
}

void Sampler::FillLogprobs(std::span<const float> logits, int32_t num_logprobs,
                           SampledToken& sampled) {
  const float max = logits[ArgMax(logits)];
  double total = 0;
  for (const float logit : logits) total += Weight(logit, max, 1.0);
  const double log_total = std::log(total);
  const auto logprob = [&](float logit) {
    if (logit == max && max > kImpossible) return static_cast<float>(-log_total);
    const double value = static_cast<double>(logit) - max - log_total;
    return value > kLowestLogprob ? static_cast<float>(value) : kLowestLogprob;
  };
  sampled.logprob = logprob(logits[static_cast<int32_t>(sampled.token)]);
  const size_t wanted = std::min(static_cast<size_t>(num_logprobs), logits.size());
  if (wanted == 0) return;
  // A heap of the best so far, its worst on top.
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = std::isnan(logits[i]) ? kImpossible : logits[i];
    const Candidate candidate{logit, static_cast<int32_t>(i)};
    if (candidates_.size() == wanted) {
      if (!Before(candidate, candidates_.front())) continue;
      std::pop_heap(candidates_.begin(), candidates_.end(), Before);
      candidates_.pop_back();
    }
    candidates_.push_back(candidate);
    std::push_heap(candidates_.begin(), candidates_.end(), Before);
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), Before);
  for (const Candidate& candidate : candidates_) {
    sampled.top_logprobs.push_back({TokenId{candidate.id}, logprob(candidate.logit)});
  }
}

SampledToken Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                             const SamplingContext& context) {
  SampledToken sampled;
  const std::span<const float> adjusted = Adjust(logits, params, context);
  sampled.token = TokenId{Draw(adjusted, params, context.position)};
  if (params.num_logprobs >= 0) FillLogprobs(logits, params.num_logprobs, sampled);
  return sampled;
}

}  // namespace hexad
