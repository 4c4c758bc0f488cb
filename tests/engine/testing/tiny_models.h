#pragma once

// Random models of a few thousand weights, with the shape of real families: grouped-query
// attention, windows shorter than the test's sequences, biases, norms a head.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/model_file.h"
#include "tests/engine/testing/gguf_writer.h"

namespace hexad {

struct TinyModelOptions {
  std::string architecture = "llama";  // or qwen2, gemma3
  uint32_t seed = 1;
  uint32_t layers = 3;  // gemma3: 7, so that a full layer lies between windows
  uint32_t vocabulary = 96;
  uint32_t context = 2048;
  uint32_t window = 20;      // gemma3
  DType type = DType::kF32;  // of matrices; quantised ones are random blocks
  bool tied_head = true;
  // 256-value blocks need multiples of 256 of all three: heads * head_dim is another input.
  uint32_t hidden = 64;
  uint32_t head_dim = 16;
  uint32_t ffn = 96;
};

constexpr uint32_t kTinyHeads = 4;
constexpr uint32_t kTinyKvHeads = 2;

GgufWriter TinyModelWriter(const TinyModelOptions& options);

// Opened from a temporary file that is gone from its folder already.
std::shared_ptr<const ModelFile> TinyModel(const TinyModelOptions& options);

// The folder of the shared test data: HEXAD_DATA, else beside the source tree.
std::string SharedDataFolder();

}  // namespace hexad
