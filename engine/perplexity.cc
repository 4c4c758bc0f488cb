#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/models/cpu_transformer.h"
#include "kernels/thread_team.h"

namespace hexad {
namespace {

constexpr int32_t kBlockTokens = 16;

absl::Status Check(const ModelFile& model, std::span<const TokenId> tokens,
                   const PerplexityOptions& options) {
  if (tokens.size() < 2 || tokens.size() > static_cast<size_t>(model.spec.max_context_tokens)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a text of %d tokens: perplexity needs 2 to %d", tokens.size(),
                        model.spec.max_context_tokens));
  }
  for (const TokenId token : tokens) {
    const auto id = static_cast<int32_t>(token);
    if (id >= 0 && id < model.spec.vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrFormat("token %d is not in the vocabulary", id));
  }
  if (options.threads < 1 || options.chunk_tokens < 1) {
    return absl::InvalidArgumentError("perplexity needs a thread and chunks of a token or more");
  }
  return absl::OkStatus();
}

double NegativeLogprob(std::span<const float> logits, TokenId token) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(logit - max);
  return std::log(total) + max - logits[static_cast<size_t>(token)];
}

}  // namespace

absl::StatusOr<PerplexityResult> MeasurePerplexity(std::shared_ptr<const ModelFile> model,
                                                   std::span<const TokenId> tokens,
                                                   const PerplexityOptions& options) {
  const absl::Status checked = Check(*model, tokens, options);
  if (!checked.ok()) return checked;
  const size_t blocks = (tokens.size() + kBlockTokens - 1) / kBlockTokens;
  const size_t groups = model->spec.groups.size();
  const auto vocabulary = static_cast<size_t>(model->spec.vocab_size);
  ThreadTeam team(options.threads);
  const KvStorageOptions kv{options.kv_type, kBlockTokens,
                            std::vector<uint32_t>(groups, static_cast<uint32_t>(blocks))};
  absl::StatusOr<std::unique_ptr<Model>> transformer =
      MakeCpuTransformer(model, PackCpuWeights(*model, team, options.activations), kv, team);
  if (!transformer.ok()) return transformer.status();

  std::vector<uint32_t> table(blocks);
  std::iota(table.begin(), table.end(), 0);
  const std::vector<std::vector<uint32_t>> tables(groups, table);
  PerplexityResult result;
  const size_t last = tokens.size() - 1;  // has nothing to predict
  for (size_t at = 0; at < last; at += static_cast<size_t>(options.chunk_tokens)) {
    const size_t count = std::min(static_cast<size_t>(options.chunk_tokens), last - at);
    const ForwardSequence sequence{static_cast<int64_t>(at), static_cast<int32_t>(count),
                                   static_cast<int32_t>(count), tables};
    const absl::StatusOr<ForwardResult> forward =
        (*transformer)->Forward({tokens.subspan(at, count), std::span(&sequence, 1)});
    if (!forward.ok()) return forward.status();
    for (size_t i = 0; i < count; ++i) {
      result.mean_negative_logprob +=
          NegativeLogprob(forward->logits.subspan(i * vocabulary, vocabulary), tokens[at + i + 1]);
    }
  }
  result.predicted = static_cast<int64_t>(last);
  result.mean_negative_logprob /= static_cast<double>(last);
  result.perplexity = std::exp(result.mean_negative_logprob);
  return result;
}

}  // namespace hexad
