// The fields that chat and plain completions share. A new one is one reader and one table row.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "server/openai/request_draft.h"
#include "server/status.h"

namespace hexad {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxModelBytes = 256;
constexpr size_t kMaxStops = 4;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxStopTokens = 128;

// A number within [kMin, kMax] / 100 into a member of SamplingParams.
template <float SamplingParams::*kMember, int kMin, int kMax>
absl::Status ReadSampling(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadNumber(value, name, kMin / 100.0, kMax / 100.0);
  if (!number.ok()) return number.status();
  draft->sampling().*kMember = static_cast<float>(*number);
  return absl::OkStatus();
}

absl::Status ReadTopP(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadNumber(value, name, 0, 1);
  if (!number.ok()) return number.status();
  // 0 means the most likely token, as the smallest mass that holds one.
  draft->sampling().top_p = std::max(static_cast<float>(*number), 1e-6f);
  return absl::OkStatus();
}

absl::Status ReadTopK(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, -1, kMaxInt32);
  if (!number.ok()) return number.status();
  draft->sampling().top_k = static_cast<int32_t>(std::max<int64_t>(*number, 0));  // -1: off too
  return absl::OkStatus();
}

absl::Status ReadSeed(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, std::numeric_limits<int64_t>::min(),
                                  std::numeric_limits<int64_t>::max());
  if (!number.ok()) return number.status();
  draft->sampling().seed = static_cast<uint64_t>(*number);
  draft->call().has_seed = true;
  return absl::OkStatus();
}

absl::Status ReadLogitBias(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto object = ReadObject(value, name);
  if (!object.ok()) return object.status();
  auto& bias = draft->sampling().logit_bias;
  bias.clear();
  for (const auto& [key, entry] : *object) {
    const std::string param = absl::StrFormat("%s.%s", name, key.substr(0, 32));
    int32_t token = 0;
    if (!absl::SimpleAtoi(std::string(key), &token) || token < 0) {
      return FieldError(param, "its key must be a token id");
    }
    const auto number = ReadNumber(entry, param, -100, 100);
    if (!number.ok()) return number.status();
    bias.emplace_back(TokenId{token}, static_cast<float>(*number));
    if (bias.size() > static_cast<size_t>(draft->limits->max_logit_bias)) {
      return FieldError(
          name, absl::StrFormat("it has more than %d entries", draft->limits->max_logit_bias));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadStop(JsonValue value, std::string_view name, RequestDraft* draft) {
  auto& stops = draft->call().stop_strings;
  stops.clear();
  const auto add = [&](JsonValue entry, std::string_view param) {
    const auto text = ReadString(entry, param, kMaxStopBytes);
    if (!text.ok()) return text.status();
    if (text->empty()) return FieldError(param, "a stop string must not be empty");
    stops.emplace_back(*text);
    return absl::OkStatus();
  };
  if (value.is_string()) return add(value, name);
  JsonArray array;
  if (value.get(array) != simdjson::SUCCESS) {
    return TypeError(name, "a string or an array of strings", value);
  }
  for (const JsonValue entry : array) {
    if (stops.size() == kMaxStops) return FieldError(name, "at most 4 stop strings are allowed");
    absl::Status status = add(entry, absl::StrFormat("%s[%d]", name, stops.size()));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadStopTokens(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto array = ReadArray(value, name);
  if (!array.ok()) return array.status();
  auto& tokens = draft->call().stop_tokens;
  tokens.clear();
  for (const JsonValue entry : *array) {
    if (tokens.size() == kMaxStopTokens) return FieldError(name, "it has more than 128 entries");
    const auto token = ReadInteger(entry, name, 0, kMaxInt32);
    if (!token.ok()) return token.status();
    tokens.push_back(TokenId{static_cast<int32_t>(*token)});
  }
  return absl::OkStatus();
}

absl::Status ReadModel(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto text = ReadString(value, name, kMaxModelBytes);
  if (!text.ok()) return text.status();
  draft->call().model = std::string(*text);
  return absl::OkStatus();
}

absl::Status ReadChoices(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 1, draft->limits->max_choices);
  if (!number.ok()) return number.status();
  draft->call().num_choices = static_cast<int32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadMaxTokens(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 1, kMaxInt32);
  if (!number.ok()) return number.status();
  draft->max_tokens = static_cast<int32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadMinTokens(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto number = ReadInteger(value, name, 0, kMaxInt32);
  if (!number.ok()) return number.status();
  draft->call().min_new_tokens = static_cast<int32_t>(*number);
  return absl::OkStatus();
}

absl::Status ReadIgnoreEos(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto flag = ReadBool(value, name);
  if (!flag.ok()) return flag.status();
  draft->call().ignore_end_of_sequence = *flag;
  return absl::OkStatus();
}

absl::Status ReadStream(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto flag = ReadBool(value, name);
  if (!flag.ok()) return flag.status();
  draft->request.stream = *flag;
  return absl::OkStatus();
}

absl::Status ReadStreamOptions(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto object = ReadObject(value, name);
  if (!object.ok()) return object.status();
  draft->has_stream_options = true;
  draft->request.include_usage = false;
  for (const auto& [key, entry] : *object) {
    if (key != "include_usage" || entry.is_null()) continue;
    const auto flag = ReadBool(entry, "stream_options.include_usage");
    if (!flag.ok()) return flag.status();
    draft->request.include_usage = *flag;
  }
  return absl::OkStatus();
}

absl::Status ReadReturnTokenIds(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto flag = ReadBool(value, name);
  if (!flag.ok()) return flag.status();
  draft->request.return_token_ids = *flag;
  return absl::OkStatus();
}

absl::Status ReadUser(JsonValue value, std::string_view name, RequestDraft*) {
  return ReadString(value, name, 64 * 1024).status();
}

absl::Status ReadResponseFormat(JsonValue value, std::string_view name, RequestDraft*) {
  const auto object = ReadObject(value, name);
  if (!object.ok()) return object.status();
  std::string_view type;
  if (object->at_key("type").get(type) != simdjson::SUCCESS) {
    return FieldError("response_format.type", "it must be a string");
  }
  if (type == "text") return absl::OkStatus();
  return FieldError("response_format.type", "only \"text\" is supported");
}

constexpr auto kCommonFields = std::to_array<RequestField>({
    {"model", ReadModel},
    {"n", ReadChoices},
    {"max_tokens", ReadMaxTokens},
    {"min_tokens", ReadMinTokens},
    {"temperature", ReadSampling<&SamplingParams::temperature, 0, 200>},
    {"top_p", ReadTopP},
    {"top_k", ReadTopK},
    {"min_p", ReadSampling<&SamplingParams::min_p, 0, 100>},
    {"presence_penalty", ReadSampling<&SamplingParams::presence_penalty, -200, 200>},
    {"frequency_penalty", ReadSampling<&SamplingParams::frequency_penalty, -200, 200>},
    {"repetition_penalty", ReadSampling<&SamplingParams::repetition_penalty, 1, 1000>},
    {"seed", ReadSeed},
    {"logit_bias", ReadLogitBias},
    {"stop", ReadStop},
    {"stop_token_ids", ReadStopTokens},
    {"ignore_eos", ReadIgnoreEos},
    {"stream", ReadStream},
    {"stream_options", ReadStreamOptions},
    {"return_token_ids", ReadReturnTokenIds},
    {"user", ReadUser},
    {"metadata", ReadMetadata},
    {"response_format", ReadResponseFormat},
    {"use_beam_search", RefuseTrue},
    {"bad_words", RefuseNotEmpty},
    {"structured_outputs", RefuseNotEmpty},
    {"guided_json", RefuseField},
    {"guided_regex", RefuseField},
    {"guided_choice", RefuseField},
    {"guided_grammar", RefuseField},
    {"grammar", RefuseNotEmpty},
    {"json_schema", RefuseNotEmpty},
    {"moderation", RefuseField},
});

}  // namespace

std::span<const RequestField> CommonFields() { return kCommonFields; }

absl::Status RefuseField(JsonValue, std::string_view name, RequestDraft*) {
  return WithParam(absl::InvalidArgumentError(absl::StrFormat("'%s' is not supported.", name)),
                   name, "unsupported_parameter");
}

absl::Status RefuseTrue(JsonValue value, std::string_view name, RequestDraft* draft) {
  const auto flag = ReadBool(value, name);
  if (!flag.ok()) return flag.status();
  return *flag ? RefuseField(value, name, draft) : absl::OkStatus();
}

absl::Status RefuseNotEmpty(JsonValue value, std::string_view name, RequestDraft* draft) {
  JsonArray array;
  JsonObject object;
  std::string_view text;
  const bool empty = (value.get(array) == simdjson::SUCCESS && array.size() == 0) ||
                     (value.get(object) == simdjson::SUCCESS && object.size() == 0) ||
                     (value.get(text) == simdjson::SUCCESS && text.empty());
  return empty ? absl::OkStatus() : RefuseField(value, name, draft);
}

absl::Status ReadFields(const JsonDocument& document, std::span<const RequestField> own,
                        RequestDraft* draft) {
  JsonObject body;
  if (document.root().get(body) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("The request body must be a JSON object.");
  }
  for (const auto& [key, value] : body) {
    if (value.is_null()) continue;
    for (const auto table : {own, CommonFields()}) {
      const auto field = std::find_if(table.begin(), table.end(),
                                      [name = key](const auto& row) { return row.name == name; });
      if (field == table.end()) continue;
      absl::Status status = field->read(value, field->name, draft);
      if (!status.ok()) return status;
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status FinishDraft(RequestDraft* draft) {
  if (draft->call().model.empty()) {
    return FieldError("model", "the request must name a model; GET /v1/models lists them");
  }
  if (draft->has_stream_options && !draft->request.stream) {
    return FieldError("stream_options", "it is only allowed when 'stream' is true");
  }
  GenerateCall& call = draft->call();
  if (call.max_new_tokens >= 0 && call.min_new_tokens > call.max_new_tokens) {
    return FieldError("min_tokens", "it must not be larger than the maximum number of tokens");
  }
  return absl::OkStatus();
}

}  // namespace hexad
