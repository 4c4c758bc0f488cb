#pragma once

// The Jinja dialect of Hugging Face chat templates, as transformers sets its environment up: a
// sandbox in which values do not change, trim_blocks, lstrip_blocks, break and continue, tojson,
// raise_exception, strftime_now and {% generation %}. Reference: Jinja 3.1's documentation and
// transformers' chat_template_utils.py. Not in it: include, import, extends and block.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/chat_template/value.h"

namespace hexad {

struct TemplateNode;

// What one rendering may cost. A template or a request that needs more gets InvalidArgument.
struct TemplateLimits {
  int64_t max_steps = 5'000'000;  // expressions and statements evaluated
  int max_depth = 300;            // nested expressions, statements and calls
  size_t max_output_bytes = size_t{16} << 20;
  size_t max_created_bytes = size_t{256} << 20;  // all strings and lists made on the way
};

struct TemplateInput {
  // A list of dicts as in the OpenAI API; parsed tool arguments where the template wants them.
  TemplateValue messages;
  TemplateValue tools = TemplateValue::None();
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
  absl::Time now;  // what strftime_now shows, in UTC
  // More variables (chat_template_kwargs); they win over those above.
  std::vector<std::pair<std::string, TemplateValue>> extra;
  TemplateLimits limits;
};

// Immutable: any number of threads may render at once.
class ChatTemplate final {
 public:
  // InvalidArgument with line and column of what cannot be parsed.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // InvalidArgument: with the template's own words when it calls raise_exception, otherwise with
  // line, column and reason.
  absl::StatusOr<std::string> Render(const TemplateInput& input) const;

 private:
  ChatTemplate();
  std::unique_ptr<TemplateNode> root_;
};

}  // namespace hexad
