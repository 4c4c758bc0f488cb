#pragma once

// llama2.c's checkpoint format to GGUF: the stories models, real weights with a published output.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/engine/testing/gguf_writer.h"

namespace hexad {

struct StoriesModel {
  std::vector<std::byte> gguf;
  std::vector<std::string> pieces;  // text of each token as llama2.c prints it
};

// checkpoint: 7 int32 and fp32 weights; tokenizer: int32, then (float score, int32 length, bytes) a
// token. Weights need no permutation: both turn neighbouring pairs of a head.
absl::StatusOr<StoriesModel> ConvertStories(const std::string& checkpoint,
                                            const std::string& tokenizer);

}  // namespace hexad
