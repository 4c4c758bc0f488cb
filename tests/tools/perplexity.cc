// engine_perplexity MODEL.gguf TEXT [THREADS [WINDOW [f32|int8 [f16|f32|q8_0]]]]: perplexity of a
// text file under a model, as one line of JSON; activations, and type of KV. The text is cut into
// windows of WINDOW tokens, each of which starts anew with the model's beginning of sequence, if it
// has one. Compare with tests/tools/perplexity_peer.py.

#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/models/model_file.h"
#include "engine/tokenizer/tokenizer.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: engine_perplexity MODEL.gguf TEXT [THREADS [WINDOW [f32|int8 "
                 "[f16|f32|q8_0]]]]\n");
    return 2;
  }
  const auto model = hexad::OpenModelFile(argv[1]);
  if (!model.ok()) return Fail(model.status());
  const auto tokenizer = hexad::Tokenizer::FromGguf(*(*model)->gguf);
  if (!tokenizer.ok()) return Fail(tokenizer.status());
  std::ifstream in(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto begin = (*tokenizer)->Encode("", {.add_special = true});
  const auto tokens = (*tokenizer)->Encode(text, {});
  if (!begin.ok()) return Fail(begin.status());
  if (!tokens.ok()) return Fail(tokens.status());
  hexad::PerplexityOptions options;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const bool int8 = argc > 5 && std::string(argv[5]) == "int8";
  options.activations = int8 ? hexad::Activations::kInt8 : hexad::Activations::kF32;
  const std::string kv = argc > 6 ? argv[6] : "f16";
  options.kv_type = kv == "q8_0"  ? hexad::DType::kQ8_0
                    : kv == "f32" ? hexad::DType::kF32
                                  : hexad::DType::kF16;
  const size_t window = std::max(argc > 4 ? std::atoi(argv[4]) : 2048, 16);
  double nll = 0;
  int64_t predicted = 0;
  unsigned long long hash = 14695981039346656037ull;  // of the ids: equal tokens, equal task
  for (size_t first = 0; first < tokens->size();) {
    std::vector<hexad::TokenId> part = *begin;
    while (part.size() < window && first < tokens->size()) part.push_back((*tokens)[first++]);
    if (part.size() < 2) break;
    const auto result = hexad::MeasurePerplexity(*model, part, options);
    if (!result.ok()) return Fail(result.status());
    nll += result->mean_negative_logprob * static_cast<double>(result->predicted);
    predicted += result->predicted;
    for (const hexad::TokenId token : part) {
      hash = (hash ^ static_cast<unsigned>(token)) * 1099511628211ull;
    }
  }
  if (predicted == 0) return Fail(absl::InvalidArgumentError("there is nothing to predict"));
  nll /= static_cast<double>(predicted);
  std::printf("{\"predicted\": %lld, \"nll\": %.6f, \"perplexity\": %.4f, \"ids\": \"%016llx\"}\n",
              static_cast<long long>(predicted), nll, std::exp(nll), hash);
  return 0;
}
