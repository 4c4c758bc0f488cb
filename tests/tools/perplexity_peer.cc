// perplexity_peer MODEL.gguf TEXT [THREADS [WINDOW]]: engine_perplexity's line of JSON from
// llama.cpp by its C API, for versions that perplexity_peer.py cannot load. Not part of the build:
//
//     g++ -O3 -std=c++20 tests/tools/perplexity_peer.cc -I LLAMA/include -I LLAMA/ggml/include
//         -L LIBRARIES -lllama -lggml -lggml-base -o perplexity_peer

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "llama.h"

namespace {

constexpr size_t kBatch = 512;

double NegativeLogprob(const float* logits, int vocabulary, llama_token token) {
  const double top = *std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (int i = 0; i < vocabulary; ++i) sum += std::exp(logits[i] - top);
  return std::log(sum) + top - logits[token];
}

std::vector<llama_token> Tokens(const llama_vocab* vocab, const std::string& text, bool special) {
  std::vector<llama_token> ids(text.size() + 8);
  const int count =
      llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), ids.data(),
                     static_cast<int32_t>(ids.size()), special, /*parse_special=*/false);
  ids.resize(static_cast<size_t>(std::max(count, 0)));
  return ids;
}

// The sum over all tokens of a window but the first, each given those before it; NaN on failure.
double WindowSum(llama_context* context, int vocabulary, const std::vector<llama_token>& window) {
  llama_memory_clear(llama_get_memory(context), true);
  llama_batch batch = llama_batch_init(kBatch, 0, 1);
  double total = 0;
  for (size_t at = 0; at < window.size(); at += kBatch) {
    const size_t count = std::min(kBatch, window.size() - at);
    batch.n_tokens = static_cast<int32_t>(count);
    for (size_t i = 0; i < count; ++i) {
      batch.token[i] = window[at + i];
      batch.pos[i] = static_cast<llama_pos>(at + i);
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0) total = NAN;
    for (size_t i = 0; !std::isnan(total) && i < count && at + i + 1 < window.size(); ++i) {
      const float* logits = llama_get_logits_ith(context, static_cast<int32_t>(i));
      total += NegativeLogprob(logits, vocabulary, window[at + i + 1]);
    }
  }
  llama_batch_free(batch);
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: perplexity_peer MODEL.gguf TEXT [THREADS [WINDOW]]\n");
    return 2;
  }
  std::ifstream in(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const size_t window = static_cast<size_t>(std::max(argc > 4 ? std::atoi(argv[4]) : 2048, 16));
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(window);
  params.n_batch = params.n_ubatch = kBatch;
  params.n_threads = params.n_threads_batch = threads;
  llama_context* context = model != nullptr ? llama_init_from_model(model, params) : nullptr;
  if (context == nullptr) {
    std::fprintf(stderr, "cannot load %s\n", argv[1]);
    return 1;
  }
  const llama_vocab* vocab = llama_model_get_vocab(model);
  const std::vector<llama_token> begin = Tokens(vocab, "", true), ids = Tokens(vocab, text, false);
  double total = 0;
  size_t predicted = 0;
  uint64_t hash = 14695981039346656037ull;  // of the ids: equal tokens, equal task
  for (size_t first = 0; first < ids.size();) {
    std::vector<llama_token> part = begin;
    while (part.size() < window && first < ids.size()) part.push_back(ids[first++]);
    if (part.size() < 2) break;
    total += WindowSum(context, llama_vocab_n_tokens(vocab), part);
    predicted += part.size() - 1;
    for (const llama_token id : part) hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211ull;
  }
  llama_free(context);
  llama_model_free(model);
  const double nll = total / static_cast<double>(predicted);
  std::printf("{\"predicted\": %zu, \"nll\": %.6f, \"perplexity\": %.4f, \"ids\": \"%016llx\"}\n",
              predicted, nll, std::exp(nll), static_cast<unsigned long long>(hash));
  return 0;
}
