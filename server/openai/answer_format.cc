#include "server/openai/answer_format.h"

#include <algorithm>
#include <utility>

#include "engine/tokenizer/utf8.h"
#include "server/openai/json_writer.h"

namespace hexad {
namespace {

std::string_view FinishName(FinishReason reason) {
  return reason == FinishReason::kLength ? "length" : "stop";
}

void WriteUsage(const Usage& usage, JsonWriter* json) {
  json->BeginObject();
  json->Key("prompt_tokens").Int(usage.prompt_tokens);
  json->Key("completion_tokens").Int(usage.completion_tokens);
  json->Key("total_tokens").Int(int64_t{usage.prompt_tokens} + usage.completion_tokens);
  json->Key("prompt_tokens_details").BeginObject();
  json->Key("cached_tokens").Int(usage.cached_tokens).Key("audio_tokens").Int(0);
  json->EndObject();
  json->Key("completion_tokens_details").BeginObject();
  for (const char* name : {"reasoning_tokens", "audio_tokens", "accepted_prediction_tokens",
                           "rejected_prediction_tokens"}) {
    json->Key(name).Int(0);
  }
  json->EndObject().EndObject();
}

// {content: [{token, logprob, bytes, top_logprobs}], refusal: null}
void WriteChatLogprobs(std::span<const TextLogprob> tokens, JsonWriter* json) {
  const auto token = [json](const std::string& bytes, float logprob) {
    json->BeginObject();
    json->Key("token").String(bytes).Key("logprob").Float(logprob).Key("bytes").Bytes(bytes);
  };
  json->BeginObject().Key("content").BeginArray();
  for (const TextLogprob& entry : tokens) {
    token(entry.bytes, entry.logprob);
    json->Key("top_logprobs").BeginArray();
    for (const auto& [bytes, logprob] : entry.top) {
      token(bytes, logprob);
      json->EndObject();
    }
    json->EndArray().EndObject();
  }
  json->EndArray().Key("refusal").Null().EndObject();
}

// {tokens, token_logprobs, top_logprobs, text_offset}
void WriteCompletionLogprobs(std::span<const TextLogprob> tokens, int64_t text_offset,
                             JsonWriter* json) {
  json->BeginObject().Key("tokens").BeginArray();
  for (const TextLogprob& entry : tokens) json->String(entry.bytes);
  json->EndArray().Key("token_logprobs").BeginArray();
  for (const TextLogprob& entry : tokens) json->Float(entry.logprob);
  json->EndArray().Key("top_logprobs").BeginArray();
  for (const TextLogprob& entry : tokens) {
    json->BeginObject();
    for (const auto& [bytes, logprob] : entry.top) json->Key(bytes).Float(logprob);
    json->EndObject();
  }
  json->EndArray().Key("text_offset").BeginArray();
  for (const TextLogprob& entry : tokens) {
    json->Int(text_offset);
    text_offset += CountCharacters(entry.bytes);
  }
  json->EndArray().EndObject();
}

void WriteTokenIds(std::span<const TokenId> tokens, JsonWriter* json) {
  json->Key("token_ids").BeginArray();
  for (const TokenId token : tokens) json->Int(static_cast<int32_t>(token));
  json->EndArray();
}

}  // namespace

std::string ErrorEvent(const HttpError& error) {
  std::string event = "data: ";
  event += ErrorBody(error);
  event += "\n\n";
  return event;
}

AnswerFormat::AnswerFormat(AnswerIdentity identity) : identity_(std::move(identity)) {
  const bool chat = identity_.kind == AnswerKind::kChat;
  JsonWriter json(&chunk_start_);
  json.BeginObject();
  json.Key("id").String(identity_.id);
  json.Key("object").String(chat ? "chat.completion.chunk" : "text_completion");
  json.Key("created").Int(identity_.created_unix);
  json.Key("model").String(identity_.model);
  if (!identity_.system_fingerprint.empty()) {
    json.Key("system_fingerprint").String(identity_.system_fingerprint);
  }
  json.Key("choices");
}

std::string AnswerFormat::Chunk(const std::string& choices, const std::string& usage) const {
  std::string event;
  event.reserve(chunk_start_.size() + choices.size() + usage.size() + 32);
  event += "data: ";
  event += chunk_start_;
  event += '[';
  event += choices;
  event += ']';
  if (identity_.include_usage) {
    event += ",\"usage\":";
    event += usage;
  }
  event += "}\n\n";
  return event;
}

std::string AnswerFormat::FirstChunk(int32_t choice) const {
  if (identity_.kind != AnswerKind::kChat) return "";
  std::string text;
  JsonWriter json(&text);
  json.BeginObject().Key("index").Int(choice);
  json.Key("delta").BeginObject();
  json.Key("role").String("assistant").Key("content").String("").Key("refusal").Null();
  json.EndObject().Key("logprobs").Null().Key("finish_reason").Null().EndObject();
  return Chunk(text, "null");
}

std::string AnswerFormat::DeltaChunk(int32_t choice, const TextDelta& delta,
                                     int64_t text_offset) const {
  const bool chat = identity_.kind == AnswerKind::kChat;
  std::string text;
  JsonWriter json(&text);
  json.BeginObject().Key("index").Int(choice);
  if (chat) {
    json.Key("delta").BeginObject().Key("content").String(delta.text).EndObject();
  } else {
    json.Key("text").String(delta.text);
  }
  json.Key("logprobs");
  if (!identity_.with_logprobs) {
    json.Null();
  } else if (chat) {
    WriteChatLogprobs(delta.logprobs, &json);
  } else {
    WriteCompletionLogprobs(delta.logprobs, text_offset, &json);
  }
  json.Key("finish_reason").Null();
  if (identity_.with_token_ids) WriteTokenIds(delta.tokens, &json);
  json.EndObject();
  return Chunk(text, "null");
}

std::string AnswerFormat::FinishChunk(int32_t choice, FinishReason reason) const {
  std::string text;
  JsonWriter json(&text);
  json.BeginObject().Key("index").Int(choice);
  if (identity_.kind == AnswerKind::kChat) {
    json.Key("delta").BeginObject().EndObject();
  } else {
    json.Key("text").String("");
  }
  json.Key("logprobs").Null();
  json.Key("finish_reason").String(FinishName(reason)).EndObject();
  return Chunk(text, "null");
}

std::string AnswerFormat::UsageChunk(const Usage& usage) const {
  std::string text;
  JsonWriter json(&text);
  WriteUsage(usage, &json);
  return Chunk("", text);
}

std::string AnswerFormat::Whole(std::span<const ChoiceAnswer> choices, const Usage& usage) const {
  const bool chat = identity_.kind == AnswerKind::kChat;
  std::string body;
  JsonWriter json(&body);
  json.BeginObject();
  json.Key("id").String(identity_.id);
  json.Key("object").String(chat ? "chat.completion" : "text_completion");
  json.Key("created").Int(identity_.created_unix);
  json.Key("model").String(identity_.model);
  json.Key("choices").BeginArray();
  for (size_t i = 0; i < choices.size(); ++i) {
    const ChoiceAnswer& choice = choices[i];
    json.BeginObject().Key("index").Int(static_cast<int64_t>(i));
    if (chat) {
      json.Key("message").BeginObject();
      json.Key("role").String("assistant").Key("content").String(choice.text);
      json.Key("refusal").Null().EndObject();
    } else {
      json.Key("text").String(choice.text);
    }
    json.Key("logprobs");
    if (!identity_.with_logprobs) {
      json.Null();
    } else if (chat) {
      WriteChatLogprobs(choice.logprobs, &json);
    } else {
      WriteCompletionLogprobs(choice.logprobs, 0, &json);
    }
    json.Key("finish_reason").String(FinishName(choice.reason));
    if (identity_.with_token_ids) WriteTokenIds(choice.tokens, &json);
    json.EndObject();
  }
  json.EndArray().Key("usage");
  WriteUsage(usage, &json);
  if (!identity_.system_fingerprint.empty()) {
    json.Key("system_fingerprint").String(identity_.system_fingerprint);
  }
  json.EndObject();
  return body;
}

}  // namespace hexad
