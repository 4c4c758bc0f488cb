#include "engine/models/families/families.h"

#include <string>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

struct Family {
  const char* architecture;
  void (*fill)(MetadataReader&, TransformerSpec&);
};

constexpr Family kFamilies[] = {
    {"llama", FillLlama},
    {"qwen2", FillQwen2},
    {"gemma3", FillGemma3},
};

// Metadata may leave the vocabulary's size out; the embedding has a row a token.
void FillVocabulary(MetadataReader& reader, TransformerSpec& spec) {
  const GgufTensor* embedding = reader.file().FindTensor("token_embd.weight");
  if (embedding == nullptr || embedding->dims.size() != 2 || embedding->dims[1] > (1 << 24)) {
    reader.Fail(absl::InvalidArgumentError(absl::StrFormat(
        "%s: no tensor \"token_embd.weight\" of two dimensions: this file holds no whole model",
        reader.file().path())));
    return;
  }
  spec.vocab_size = static_cast<int32_t>(embedding->dims[1]);
  spec.tied_head = reader.file().FindTensor("output.weight") == nullptr;
}

}  // namespace

absl::StatusOr<TransformerSpec> ReadSpec(const GgufFile& file) {
  const absl::StatusOr<std::string> architecture = file.String("general.architecture");
  if (!architecture.ok()) return architecture.status();
  std::string known;
  for (const Family& family : kFamilies) {
    if (*architecture == family.architecture) {
      TransformerSpec spec;
      spec.architecture = *architecture;
      MetadataReader reader(file, *architecture);
      family.fill(reader, spec);
      if (reader.status().ok()) FillVocabulary(reader, spec);
      if (!reader.status().ok()) return reader.status();
      return spec;
    }
    known += known.empty() ? "" : ", ";
    known += family.architecture;
  }
  return absl::UnimplementedError(absl::StrFormat(
      "%s: general.architecture is \"%s\": hexad runs %s", file.path(), *architecture, known));
}

}  // namespace hexad
