// engine_perplexity MODEL.gguf TEXT [THREADS [f32|int8]]: perplexity of a text file under a model,
// as one line of JSON. Compare with tests/tools/perplexity_peer.py on the same arguments.

#include "engine/perplexity.h"

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
    std::fprintf(stderr, "usage: engine_perplexity MODEL.gguf TEXT [THREADS [f32|int8]]\n");
    return 2;
  }
  const auto model = hexad::OpenModelFile(argv[1]);
  if (!model.ok()) return Fail(model.status());
  const auto tokenizer = hexad::Tokenizer::FromGguf(*(*model)->gguf);
  if (!tokenizer.ok()) return Fail(tokenizer.status());
  std::ifstream in(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto tokens = (*tokenizer)->Encode(text, {.add_special = true});
  if (!tokens.ok()) return Fail(tokens.status());
  hexad::PerplexityOptions options;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const bool int8 = argc > 4 && std::string(argv[4]) == "int8";
  options.activations = int8 ? hexad::Activations::kInt8 : hexad::Activations::kF32;
  const auto result = hexad::MeasurePerplexity(*model, *tokens, options);
  if (!result.ok()) return Fail(result.status());
  unsigned long long hash = 14695981039346656037ull;  // of the ids: equal tokens, equal task
  for (const hexad::TokenId token : *tokens) {
    hash = (hash ^ static_cast<unsigned>(token)) * 1099511628211ull;
  }
  std::printf("{\"predicted\": %lld, \"nll\": %.6f, \"perplexity\": %.4f, \"ids\": \"%016llx\"}\n",
              static_cast<long long>(result->predicted), result->mean_negative_logprob,
              result->perplexity, hash);
  return 0;
}
