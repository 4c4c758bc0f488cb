#pragma once

// What the daemon keeps of a model besides its replicas: tokenizer, template, limits. Immutable.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/models/model_file.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/chat_template/chat_template.h"

namespace hexad {

struct LoadedModel {
  std::string name;
  int64_t created_unix = 0;
  int32_t max_context_tokens = 0;
  std::string model_digest;
  std::shared_ptr<const ModelFile> file;  // nullptr: nothing computes with its weights
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // nullptr: the model has none
};

}  // namespace hexad
