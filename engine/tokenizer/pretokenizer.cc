#include "engine/tokenizer/pretokenizer.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_format.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hexad {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kOneDigit = R"(\p{N})";

struct Recipe {
  const char* name;
  std::array<const char*, 4> patterns;  // nullptr: no more
  bool whole_words_first = false;
  bool add_bos_by_default = false;
};

// From llama.cpp's table of pre-tokenisers, src/llama-vocab.cpp.
constexpr Recipe kRecipes[] = {
    // What a file without a name, or converted before there were names, was tokenised with.
    {"default",
     {R"([\p{P}\$\+<=>\^~\|]+)",
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
      R"([0-9][0-9][0-9])"}},
    {"gpt-2", {kGpt2}},
    {"phi-2", {kGpt2}},
    {"mpt", {kGpt2}},
    {"olmo", {kGpt2}},
    {"smollm", {kOneDigit, kGpt2}},
    {"starcoder", {kOneDigit, kGpt2}},
    {"refact", {kOneDigit, kGpt2}},
    {"command-r", {kOneDigit, kGpt2}},
    {"codeshell", {kOneDigit, kGpt2}},
    {"exaone", {kOneDigit, kGpt2}},
    {"llama-bpe", {kLlama3}, true, true},
    {"llama3", {kLlama3}, true, true},
    {"llama-v3", {kLlama3}, true, true},
    {"lfm2", {kLlama3}, true, true},
    {"dbrx", {kLlama3}},
    {"smaug-bpe", {kLlama3}},
    {"qwen2", {kQwen2}},
    {"deepseek-r1-qwen", {kQwen2}},
    {"stablelm2", {kQwen2}},
    {"gpt-4o", {kO200k}},
    {"llama4", {kO200k}},
};

const Recipe* FindRecipe(std::string_view name) {
  for (const Recipe& recipe : kRecipes) {
    if (name == recipe.name) return &recipe;
  }
  return nullptr;
}

std::string KnownNames() {
  std::string names;
  for (const Recipe& recipe : kRecipes) {
    if (!names.empty()) names += ", ";
    names += recipe.name;
  }
  return names;
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

class Pretokenizer::Pattern final {
 public:
  explicit Pattern(pcre2_code* code) : code_(code) {}
  ~Pattern() { pcre2_code_free(code_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  static absl::StatusOr<std::unique_ptr<Pattern>> Compile(std::string_view source) {
    int error = 0;
    size_t offset = 0;
    // UCP, or \s would miss the no-break space and its like.
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                     PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    if (code == nullptr) {
      return absl::InternalError(
          absl::StrFormat("pre-tokeniser: PCRE2 error %d at offset %d", error, offset));
    }
    // Without a just-in-time compiler for this machine the interpreter runs.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return std::make_unique<Pattern>(code);
  }

  // Appends the matches in `text` and the gaps between them.
  absl::Status Cut(std::string_view text, std::vector<std::string_view>& words) const {
    const std::unique_ptr<pcre2_match_data, FreeMatchData> data(
        pcre2_match_data_create_from_pattern(code_, nullptr));
    if (data == nullptr) return absl::ResourceExhaustedError("pre-tokeniser: out of memory");
    size_t position = 0;
    while (position < text.size()) {
      const int count = Match(text, position, data.get());
      if (count == PCRE2_ERROR_NOMATCH) break;
      if (count < 0) {
        return absl::ResourceExhaustedError(
            absl::StrFormat("pre-tokeniser: PCRE2 error %d at byte %d", count, position));
      }
      const size_t* bounds = pcre2_get_ovector_pointer(data.get());
      if (bounds[0] > position) words.push_back(text.substr(position, bounds[0] - position));
      // No expression of the table matches the empty string.
      if (bounds[1] <= bounds[0]) return absl::InternalError("pre-tokeniser: empty match");
      words.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
      position = bounds[1];
    }
    if (position < text.size()) words.push_back(text.substr(position));
    return absl::OkStatus();
  }

 private:
  int Match(std::string_view text, size_t position, pcre2_match_data* data) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int count =
        pcre2_match(code_, subject, text.size(), position, PCRE2_NO_UTF_CHECK, data, nullptr);
    if (count != PCRE2_ERROR_JIT_STACKLIMIT) return count;
    // The interpreter keeps its stack on the heap.
    return pcre2_match(code_, subject, text.size(), position, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       data, nullptr);
  }

  pcre2_code* code_;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

absl::StatusOr<Pretokenizer> Pretokenizer::Make(std::string_view name) {
  const Recipe* recipe = FindRecipe(name);
  if (recipe == nullptr) {
    return absl::UnimplementedError(
        absl::StrFormat("tokenizer: no pre-tokeniser is called \"%s\"; known are %s",
                        std::string(name.substr(0, 64)), KnownNames()));
  }
  Pretokenizer made;
  made.whole_words_first_ = recipe->whole_words_first;
  made.add_bos_by_default_ = recipe->add_bos_by_default;
  for (const char* source : recipe->patterns) {
    if (source == nullptr) break;
    auto pattern = Pattern::Compile(source);
    if (!pattern.ok()) return pattern.status();
    made.patterns_.push_back(*std::move(pattern));
  }
  return made;
}

absl::StatusOr<std::vector<std::string_view>> Pretokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (text.empty()) return words;
  words.push_back(text);
  for (const auto& pattern : patterns_) {
    std::vector<std::string_view> finer;
    finer.reserve(words.size() + text.size() / 8);
    for (std::string_view word : words) {
      if (absl::Status status = pattern->Cut(word, finer); !status.ok()) return status;
    }
    words = std::move(finer);
  }
  return words;
}

}  // namespace hexad
