#include "server/serving/prepare.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvcache/core/keys.h"
#include "server/status.h"

namespace hexad {
namespace {

absl::StatusOr<const LoadedModel*> FindModel(std::span<const std::unique_ptr<LoadedModel>> models,
                                             const std::string& name) {
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (model->name == name) return model.get();
    names.push_back(model->name);
  }
  return WithParam(absl::NotFoundError(absl::StrFormat(
                       "The model '%s' does not exist or is not served here; this server has: %s",
                       name, absl::StrJoin(names, ", "))),
                   "model", "model_not_found");
}

absl::StatusOr<std::string> RenderChat(const LoadedModel& model,
                                       const std::vector<ChatMessage>& messages, absl::Time now) {
  if (model.chat_template == nullptr) {
    return WithParam(
        absl::InvalidArgumentError(absl::StrFormat(
            "The model '%s' has no chat template, so it cannot answer messages; send a prompt to "
            "/v1/completions, or serve an instruction-tuned model",
            model.name)),
        "messages");
  }
  TemplateInput input;
  TemplateValue::List list;
  for (const ChatMessage& message : messages) {
    TemplateDict dict({{"role", message.role}, {"content", message.content}});
    if (!message.name.empty()) dict.Set("name", message.name);
    list.push_back(std::move(dict));
  }
  input.messages = std::move(list);
  input.add_generation_prompt = true;
  input.bos_token = std::string(model.tokenizer->bos_text());
  input.eos_token = std::string(model.tokenizer->eos_text());
  input.now = now;
  auto text = model.chat_template->Render(input);
  if (!text.ok()) return WithParam(text.status(), "messages");
  return text;
}

absl::StatusOr<std::vector<TokenId>> PromptTokens(const CallState& state, const LoadedModel& model,
                                                  absl::Time now) {
  const auto& input = state.call.input;
  if (const auto* tokens = std::get_if<std::vector<TokenId>>(&input)) {
    for (size_t i = 0; i < tokens->size(); ++i) {
      const auto token = static_cast<int32_t>((*tokens)[i]);
      if (token < 0 || token >= model.tokenizer->vocab_size()) {
        return WithParam(absl::InvalidArgumentError(absl::StrFormat(
                             "prompt[%d] is token %d; this model has tokens 0 to %d", i, token,
                             model.tokenizer->vocab_size() - 1)),
                         "prompt");
      }
    }
    return *tokens;
  }
  Tokenizer::EncodeOptions options{.add_special = true, .parse_special = true};
  if (const auto* messages = std::get_if<std::vector<ChatMessage>>(&input)) {
    auto text = RenderChat(model, *messages, now);
    if (!text.ok()) return text.status();
    // Templates write the beginning of the sequence themselves.
    const std::string_view bos = model.tokenizer->bos_text();
    if (!bos.empty() && text->starts_with(bos)) options.add_special = false;
    auto tokens = model.tokenizer->Encode(*text, options);
    return tokens.ok() ? std::move(tokens) : WithParam(tokens.status(), "messages");
  }
  auto tokens = model.tokenizer->Encode(std::get<std::string>(input), options);
  return tokens.ok() ? std::move(tokens) : WithParam(tokens.status(), "prompt");
}

absl::Status CheckLengths(CallState& state, const LoadedModel& model, const char* prompt_param) {
  const GenerateCall& call = state.call;
  const int32_t context = model.max_context_tokens;
  if (state.prompt_tokens == 0) {
    return WithParam(absl::InvalidArgumentError("The prompt is empty; it needs at least one token"),
                     prompt_param);
  }
  if (state.prompt_tokens >= context) {
    return WithParam(absl::InvalidArgumentError(absl::StrFormat(
                         "This model's maximum context length is %d tokens, and the prompt has %d; "
                         "shorten it by at least %d tokens",
                         context, state.prompt_tokens, state.prompt_tokens - context + 1)),
                     prompt_param, "context_length_exceeded");
  }
  if (call.max_new_tokens < 0) {
    state.max_new_tokens = context - state.prompt_tokens;
    return absl::OkStatus();
  }
  if (int64_t{state.prompt_tokens} + call.max_new_tokens > context) {
    return WithParam(
        absl::InvalidArgumentError(absl::StrFormat(
            "This model's maximum context length is %d tokens, and the prompt has %d: at most %d "
            "are left for the answer, but max_tokens is %d",
            context, state.prompt_tokens, context - state.prompt_tokens, call.max_new_tokens)),
        prompt_param, "context_length_exceeded");
  }
  state.max_new_tokens = call.max_new_tokens;
  return absl::OkStatus();
}

absl::Status CheckTokenIds(const GenerateCall& call, const Tokenizer& tokenizer) {
  const auto check = [&](TokenId token, const char* field) {
    const auto id = static_cast<int32_t>(token);
    if (id >= 0 && id < tokenizer.vocab_size()) return absl::OkStatus();
    return WithParam(absl::InvalidArgumentError(
                         absl::StrFormat("%s names token %d; this model has tokens 0 to %d", field,
                                         id, tokenizer.vocab_size() - 1)),
                     field);
  };
  for (const auto& [token, bias] : call.sampling.logit_bias) {
    if (absl::Status status = check(token, "logit_bias"); !status.ok()) return status;
  }
  for (const TokenId token : call.stop_tokens) {
    if (absl::Status status = check(token, "stop_token_ids"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Distinct streams of random numbers for the choices of one seed; the first is the seed's own.
uint64_t SeedOfChoice(uint64_t seed, int32_t choice) {
  return seed + static_cast<uint64_t>(choice) * 0x9e3779b97f4a7c15u;
}

}  // namespace

absl::StatusOr<std::vector<RequestSpec>> Prepare(
    CallState& state, std::span<const std::unique_ptr<LoadedModel>> models,
    const PrepareOptions& options, absl::Time now) {
  const GenerateCall& call = state.call;
  const auto model = FindModel(models, call.model);
  if (!model.ok()) return model.status();
  const Tokenizer& tokenizer = *(*model)->tokenizer;

  auto prompt = PromptTokens(state, **model, now);
  if (!prompt.ok()) return prompt.status();
  state.model = *model;
  state.prompt_tokens = static_cast<int32_t>(prompt->size());
  const bool chat = std::holds_alternative<std::vector<ChatMessage>>(call.input);
  if (absl::Status status = CheckLengths(state, **model, chat ? "messages" : "prompt");
      !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckTokenIds(call, tokenizer); !status.ok()) return status;

  RequestSpec request;
  request.root_key = RootKey((*model)->model_digest, /*adapter_digest=*/"",
                             DeriveTenantSalt(options.server_secret, call.tenant));
  request.unit_keys = UnitKeys(request.root_key, *prompt);
  request.prompt = std::move(*prompt);
  request.sampling = call.sampling;
  request.stop.max_new_tokens = state.max_new_tokens;
  request.stop.min_new_tokens = std::min(call.min_new_tokens, state.max_new_tokens);
  request.stop.stop_tokens = tokenizer.end_of_generation();
  request.stop.stop_tokens.insert(request.stop.stop_tokens.end(), call.stop_tokens.begin(),
                                  call.stop_tokens.end());
  request.stop.ignore_end_of_sequence = call.ignore_end_of_sequence;
  request.arrival = state.arrival;

  const uint64_t seed = call.has_seed ? call.sampling.seed : options.random_seed;
  std::vector<RequestSpec> requests(call.num_choices, request);
  for (int32_t i = 0; i < call.num_choices; ++i) {
    requests[i].id = RequestOf(state.id, i);
    requests[i].sampling.seed = SeedOfChoice(seed, i);
  }
  return requests;
}

}  // namespace hexad
