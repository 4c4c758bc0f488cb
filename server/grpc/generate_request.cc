#include "server/grpc/generate_request.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "hexad/v1/inference.pb.h"
#include "server/status.h"

namespace hexad {
namespace {

constexpr int32_t kMaxChoices = 8;
constexpr int kMaxMessages = 16384;
constexpr int kMaxLogitBias = 1024;
constexpr int kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 1024;
constexpr int kMaxStopTokens = 64;
constexpr size_t kMaxIdBytes = 256;
constexpr size_t kMaxParents = 64;

absl::Status FieldProblem(std::string_view field, std::string_view problem) {
  return WithParam(absl::InvalidArgumentError(absl::StrFormat("%s %s", field, problem)), field);
}

// Values in [min, max], or (min, max] when `open`; what is not set keeps its default.
struct Range {
  double min;
  double max;
  bool open = false;
};

template <typename Number>
absl::Status Take(bool is_set, Number value, std::string_view field, Range range, Number* out) {
  if (!is_set) return absl::OkStatus();
  const auto number = static_cast<double>(value);
  if (!(range.open ? number > range.min : number >= range.min) || !(number <= range.max)) {
    return FieldProblem(
        field, absl::StrFormat("must be %s %g and at most %g", range.open ? "above" : "at least",
                               range.min, range.max));
  }
  *out = value;
  return absl::OkStatus();
}

// Ids are logged and shown: bounded, and without control characters.
absl::Status CheckId(std::string_view id, std::string_view field) {
  const bool printable = std::none_of(id.begin(), id.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (printable && id.size() <= kMaxIdBytes) return absl::OkStatus();
  return FieldProblem(
      field, absl::StrFormat("must be at most %d bytes without control characters", kMaxIdBytes));
}

absl::Status CheckTokens(const google::protobuf::RepeatedField<int32_t>& ids,
                         std::string_view field) {
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0) continue;
    return FieldProblem(absl::StrFormat("%s[%d]", field, i), "must not be negative");
  }
  return absl::OkStatus();
}

std::vector<TokenId> Tokens(const google::protobuf::RepeatedField<int32_t>& ids) {
  std::vector<TokenId> tokens;
  tokens.reserve(static_cast<size_t>(ids.size()));
  for (const int32_t id : ids) tokens.push_back(static_cast<TokenId>(id));
  return tokens;
}

absl::Status ReadInput(const v1::GenerateRequest& request, GenerateCall* call) {
  switch (request.input_case()) {
    case v1::GenerateRequest::kText:
      call->input = request.text();
      return absl::OkStatus();
    case v1::GenerateRequest::kTokenIds: {
      if (request.token_ids().ids().empty()) {
        return FieldProblem("token_ids.ids", "must not be empty");
      }
      absl::Status status = CheckTokens(request.token_ids().ids(), "token_ids.ids");
      if (status.ok()) call->input = Tokens(request.token_ids().ids());
      return status;
    }
    case v1::GenerateRequest::kMessages: {
      const auto& messages = request.messages().messages();
      if (messages.empty() || messages.size() > kMaxMessages) {
        return FieldProblem("messages.messages",
                            absl::StrFormat("must have 1 to %d entries", kMaxMessages));
      }
      std::vector<ChatMessage> chat;
      for (int i = 0; i < messages.size(); ++i) {
        if (messages[i].role().empty()) {
          return FieldProblem(absl::StrFormat("messages.messages[%d].role", i), "is required");
        }
        chat.push_back({messages[i].role(), messages[i].content(), messages[i].name()});
      }
      call->input = std::move(chat);
      return absl::OkStatus();
    }
    case v1::GenerateRequest::INPUT_NOT_SET:
      break;
  }
  return FieldProblem("input", "is required: text, messages or token_ids");
}

absl::Status ReadSampling(const v1::Sampling& wire, GenerateCall* call) {
  SamplingParams& sampling = call->sampling;
  absl::Status status;
  status.Update(Take(wire.has_temperature(), wire.temperature(), "sampling.temperature", {0, 2},
                     &sampling.temperature));
  status.Update(Take(wire.has_top_k(), wire.top_k(), "sampling.top_k", {0, 1e6}, &sampling.top_k));
  status.Update(
      Take(wire.has_top_p(), wire.top_p(), "sampling.top_p", {0, 1, true}, &sampling.top_p));
  status.Update(Take(wire.has_min_p(), wire.min_p(), "sampling.min_p", {0, 1}, &sampling.min_p));
  status.Update(Take(wire.has_repetition_penalty(), wire.repetition_penalty(),
                     "sampling.repetition_penalty", {0, 10, true}, &sampling.repetition_penalty));
  status.Update(Take(wire.has_presence_penalty(), wire.presence_penalty(),
                     "sampling.presence_penalty", {-2, 2}, &sampling.presence_penalty));
  status.Update(Take(wire.has_frequency_penalty(), wire.frequency_penalty(),
                     "sampling.frequency_penalty", {-2, 2}, &sampling.frequency_penalty));
  status.Update(Take(wire.has_num_logprobs(), wire.num_logprobs(), "sampling.num_logprobs", {0, 20},
                     &sampling.num_logprobs));
  if (!status.ok()) return status;
  call->has_seed = wire.has_seed();
  sampling.seed = wire.seed();
  if (wire.logit_bias_size() > kMaxLogitBias) {
    return FieldProblem("sampling.logit_bias",
                        absl::StrFormat("must have at most %d entries", kMaxLogitBias));
  }
  for (const auto& [token, bias] : wire.logit_bias()) {
    const std::string field = absl::StrFormat("sampling.logit_bias[%d]", token);
    if (token < 0) return FieldProblem(field, "must not be negative");
    float checked = 0;
    status = Take(true, bias, field, {-100, 100}, &checked);
    if (!status.ok()) return status;
    sampling.logit_bias.emplace_back(static_cast<TokenId>(token), checked);
  }
  // A map has no order of its own; the same request is the same call.
  std::sort(sampling.logit_bias.begin(), sampling.logit_bias.end());
  return absl::OkStatus();
}

absl::Status ReadStop(const v1::Stop& wire, GenerateCall* call) {
  absl::Status status;
  status.Update(Take(wire.has_max_tokens(), wire.max_tokens(), "stop.max_tokens", {1, 1e9},
                     &call->max_new_tokens));
  status.Update(Take(true, wire.min_tokens(), "stop.min_tokens", {0, 1e9}, &call->min_new_tokens));
  if (!status.ok()) return status;
  if (call->max_new_tokens >= 0 && call->min_new_tokens > call->max_new_tokens) {
    return FieldProblem("stop.min_tokens", "must not be above stop.max_tokens");
  }
  call->ignore_end_of_sequence = wire.ignore_end_of_sequence();
  if (wire.strings_size() > kMaxStopStrings) {
    return FieldProblem("stop.strings",
                        absl::StrFormat("must have at most %d entries", kMaxStopStrings));
  }
  for (int i = 0; i < wire.strings_size(); ++i) {
    if (wire.strings(i).empty() || wire.strings(i).size() > kMaxStopBytes) {
      return FieldProblem(absl::StrFormat("stop.strings[%d]", i),
                          absl::StrFormat("must have 1 to %d bytes", kMaxStopBytes));
    }
    call->stop_strings.push_back(wire.strings(i));
  }
  if (wire.token_ids_size() > kMaxStopTokens) {
    return FieldProblem("stop.token_ids",
                        absl::StrFormat("must have at most %d entries", kMaxStopTokens));
  }
  status = CheckTokens(wire.token_ids(), "stop.token_ids");
  if (status.ok()) call->stop_tokens = Tokens(wire.token_ids());
  return status;
}

absl::Status ReadWorkflow(const v1::WorkflowHints& wire, const CallMetadata& metadata,
                          WorkflowHints* hints) {
  const auto first = [](const std::string& a, const std::string& b) { return a.empty() ? b : a; };
  hints->workflow = first(wire.workflow(), metadata.workflow);
  hints->call = first(wire.call(), metadata.call);
  hints->agent = first(wire.agent(), metadata.agent);
  hints->parents.assign(wire.parents().begin(), wire.parents().end());
  if (hints->parents.empty() && !metadata.parents.empty()) {
    for (const auto& piece : absl::StrSplit(metadata.parents, ',')) {
      const std::string parent(piece);
      const size_t start = parent.find_first_not_of(' ');
      if (start == std::string::npos) continue;
      hints->parents.push_back(parent.substr(start, parent.find_last_not_of(' ') - start + 1));
      if (hints->parents.size() > kMaxParents) break;
    }
  }
  if (hints->workflow.empty() && hints->call.empty() && hints->agent.empty() &&
      hints->parents.empty()) {
    return absl::OkStatus();
  }
  hints->source = "hexad";
  absl::Status status = CheckId(hints->workflow, "workflow.workflow");
  status.Update(CheckId(hints->call, "workflow.call"));
  status.Update(CheckId(hints->agent, "workflow.agent"));
  for (const std::string& parent : hints->parents) {
    status.Update(CheckId(parent, "workflow.parents"));
  }
  if (hints->parents.size() > kMaxParents) {
    status.Update(FieldProblem("workflow.parents",
                               absl::StrFormat("must have at most %d entries", kMaxParents)));
  }
  return status;
}

}  // namespace

absl::StatusOr<GenerateCall> ParseGenerateRequest(const v1::GenerateRequest& request,
                                                  const CallMetadata& metadata) {
  GenerateCall call;
  call.model = request.model();
  call.request_id = request.request_id().empty() ? metadata.request_id : request.request_id();
  absl::Status status = CheckId(call.request_id, "request_id");
  if (call.model.empty()) status.Update(FieldProblem("model", "is required"));
  if (call.model.size() > kMaxIdBytes) status.Update(FieldProblem("model", "is too long"));
  if (request.num_choices() != 0) {
    status.Update(
        Take(true, request.num_choices(), "num_choices", {1, kMaxChoices}, &call.num_choices));
  }
  if (status.ok()) status = ReadInput(request, &call);
  if (status.ok()) status = ReadSampling(request.sampling(), &call);
  if (status.ok()) status = ReadStop(request.stop(), &call);
  if (status.ok()) status = ReadWorkflow(request.workflow(), metadata, &call.workflow);
  if (!status.ok()) return status;
  return call;
}

}  // namespace hexad
