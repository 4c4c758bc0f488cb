#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "engine/tokenizer/pretokenizer.h"
#include "engine/tokenizer/tokenizer_data.h"
#include "engine/weights/gguf.h"

namespace hexad {
namespace {

// Absent is -1; a value that is no token id of any vocabulary is an error.
absl::StatusOr<int32_t> OptionalId(const GgufFile& file, const std::string& key) {
  const absl::StatusOr<int64_t> id = file.Int(key);
  if (absl::IsNotFound(id.status())) return -1;
  if (!id.ok()) return id.status();
  if (*id < 0 || *id > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %s is %d, not a token id", file.path(), key, *id));
  }
  return static_cast<int32_t>(*id);
}

absl::StatusOr<bool> OptionalBool(const GgufFile& file, const std::string& key, bool absent) {
  const absl::StatusOr<bool> value = file.Bool(key);
  return absl::IsNotFound(value.status()) ? absent : value;
}

absl::StatusOr<std::string> OptionalString(const GgufFile& file, const std::string& key,
                                           const char* absent) {
  const absl::StatusOr<std::string> value = file.String(key);
  if (absl::IsNotFound(value.status())) return std::string(absent);
  return value;
}

absl::Status ReadTokens(const GgufFile& file, TokenizerData& data) {
  const auto* tokens = file.Strings("tokenizer.ggml.tokens");
  if (tokens == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: tokenizer.ggml.tokens is not an array of strings", file.path()));
  }
  data.tokens = *tokens;
  if (const auto* merges = file.Strings("tokenizer.ggml.merges")) data.merges = *merges;
  if (const GgufArray* scores = file.Array("tokenizer.ggml.scores")) {
    const auto* values = std::get_if<std::vector<double>>(&scores->items);
    if (values == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: tokenizer.ggml.scores is not an array of floats", file.path()));
    }
    data.scores.assign(values->begin(), values->end());
  }
  const GgufArray* types = file.Array("tokenizer.ggml.token_type");
  if (types == nullptr) return absl::OkStatus();
  const auto append = [&](auto value) {
    if (value < 0 || value > static_cast<int>(TokenType::kByte)) return false;
    data.types.push_back(static_cast<TokenType>(value));
    return true;
  };
  bool good = false;
  if (const auto* values = std::get_if<std::vector<int64_t>>(&types->items)) {
    good = true;
    for (int64_t value : *values) good = good && append(value);
  } else if (const auto* unsigned_values = std::get_if<std::vector<uint64_t>>(&types->items)) {
    good = true;
    for (uint64_t value : *unsigned_values) {
      good = good && value <= static_cast<uint64_t>(TokenType::kByte) &&
             append(static_cast<int64_t>(value));
    }
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: tokenizer.ggml.token_type holds something else than types 0 to 6", file.path()));
}

absl::Status ReadIds(const GgufFile& file, TokenizerData& data) {
  const bool score = data.model == TokenizerData::Model::kScore;
  // SentencePiece's own places, for files that do not say.
  const std::pair<const char*, std::pair<int32_t*, int32_t>> single[] = {
      {"tokenizer.ggml.bos_token_id", {&data.bos, score ? 1 : -1}},
      {"tokenizer.ggml.eos_token_id", {&data.eos, score ? 2 : -1}},
      {"tokenizer.ggml.unknown_token_id", {&data.unknown, score ? 0 : -1}},
  };
  for (const auto& [key, place] : single) {
    const absl::StatusOr<int32_t> id = OptionalId(file, key);
    if (!id.ok()) return id.status();
    *place.first = *id < 0 ? place.second : *id;
  }
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const absl::StatusOr<int32_t> id = OptionalId(file, key);
    if (!id.ok()) return id.status();
    if (*id >= 0) data.end_of_generation.push_back(*id);
  }
  return absl::OkStatus();
}

absl::Status ReadFlags(const GgufFile& file, TokenizerData& data) {
  const bool score = data.model == TokenizerData::Model::kScore;
  bool add_bos = score;
  if (!score) {
    const auto pretokenizer = Pretokenizer::Make(data.pre);
    if (!pretokenizer.ok()) return pretokenizer.status();
    add_bos = pretokenizer->add_bos_by_default();
  }
  const auto bos = OptionalBool(file, "tokenizer.ggml.add_bos_token", add_bos);
  if (!bos.ok()) return bos.status();
  data.add_bos = *bos;
  const auto prefix = OptionalBool(file, "tokenizer.ggml.add_space_prefix", score);
  if (!prefix.ok()) return prefix.status();
  data.add_space_prefix = *prefix;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(const GgufFile& file) {
  TokenizerData data;
  const auto model = file.String("tokenizer.ggml.model");
  if (!model.ok()) return model.status();
  if (*model == "llama") {
    data.model = TokenizerData::Model::kScore;
  } else if (*model == "gpt2") {
    data.model = TokenizerData::Model::kMerge;
  } else {
    return absl::UnimplementedError(
        absl::StrFormat("%s: tokenizer model \"%s\" is not implemented; known are llama and gpt2",
                        file.path(), model->substr(0, 64)));
  }
  const auto pre = OptionalString(file, "tokenizer.ggml.pre", "default");
  if (!pre.ok()) return pre.status();
  data.pre = *pre;
  const auto chat_template = OptionalString(file, "tokenizer.chat_template", "");
  if (!chat_template.ok()) return chat_template.status();
  data.chat_template = *chat_template;
  for (auto* read : {&ReadTokens, &ReadIds, &ReadFlags}) {
    if (absl::Status status = (*read)(file, data); !status.ok()) return status;
  }
  auto tokenizer = MakeTokenizer(std::move(data));
  if (tokenizer.ok()) return tokenizer;
  return absl::Status(
      tokenizer.status().code(),
      absl::StrFormat("%s: %s", file.path(), std::string(tokenizer.status().message())));
}

}  // namespace hexad
