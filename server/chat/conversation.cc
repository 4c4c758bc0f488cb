#include "server/chat/conversation.h"

#include <cstdio>
#include <utility>

#include "server/client/http_client.h"
#include "server/client/interrupt.h"
#include "server/client/json_text.h"
#include "server/client/sse_parser.h"

namespace hexad {
namespace {

constexpr size_t kErrorBodyLimit = 64 << 10;
constexpr size_t kAnswerLimit = size_t{64} << 20;

// Collects one streamed answer.
struct Receiver {
  const std::function<void(std::string_view, bool)>& on_text;
  ChatDecoder decoder;
  SseParser parser;
  std::string answer;
  std::string error_body;
  AnswerEnd end;
  bool done = false;  // [DONE] or an error event

  bool OnBody(long status, std::string_view bytes) {
    if (status != 200) {
      error_body += bytes.substr(0, kErrorBodyLimit - error_body.size());
      return true;
    }
    const bool fits =
        parser.Feed(bytes, [this](const SseEvent& event) { OnPiece(decoder.Event(event.data)); });
    if (!fits || answer.size() > kAnswerLimit) {
      end.status = absl::OutOfRangeError("the server sent more than an answer may hold");
      return false;
    }
    return true;
  }
  void OnPiece(const ChatPiece& piece) {
    if (done) return;
    switch (piece.kind) {
      case ChatPiece::Kind::kDone:
        done = true;
        return;
      case ChatPiece::Kind::kError:
      case ChatPiece::Kind::kMalformed:
        done = true;
        end.status = absl::InternalError("the server broke off: " + piece.message);
        return;
      case ChatPiece::Kind::kChunk:
        break;
    }
    if (!piece.reasoning.empty()) on_text(piece.reasoning, true);
    if (!piece.text.empty()) on_text(piece.text, false);
    answer += piece.text;
    if (!piece.finish_reason.empty()) end.finish_reason = piece.finish_reason;
    if (piece.usage.has_value()) end.usage = piece.usage;
  }
};

absl::Status StatusOf(const ApiServer& server, const HttpOutcome& outcome,
                      const Receiver& receiver) {
  if (!receiver.end.status.ok()) return receiver.end.status;
  switch (outcome.end) {
    case TransferEnd::kAborted:
      return absl::CancelledError("interrupted");
    case TransferEnd::kNotConnected:
      return absl::UnavailableError(NoServerMessage(server, outcome.detail));
    case TransferEnd::kTimedOut:
      return absl::DeadlineExceededError("the server took too long: " + outcome.detail);
    case TransferEnd::kBroken:
    case TransferEnd::kComplete:
      break;
  }
  if (outcome.status != 0 && outcome.status != 200) {
    const std::string text = "the server answered " + std::to_string(outcome.status) + ": " +
                             ErrorMessageOf(receiver.error_body);
    return absl::FailedPreconditionError(text);
  }
  // Some servers close without [DONE]; a finish reason is enough.
  if (!receiver.done && receiver.end.finish_reason.empty()) {
    return absl::UnavailableError("the stream broke off" +
                                  (outcome.detail.empty() ? "" : " (" + outcome.detail + ")"));
  }
  return absl::OkStatus();
}

void AppendMessage(std::string& body, const char* role, std::string_view content) {
  if (body.back() != '[') body += ',';
  body += "{\"role\":\"" + std::string(role) + "\",\"content\":";
  AppendJsonString(body, content);
  body += '}';
}

}  // namespace

std::string Conversation::RequestBody(std::string_view question) const {
  std::string body = "{\"model\":" + JsonString(options_.model) + ",\"messages\":[";
  if (!system_.empty()) AppendMessage(body, "system", system_);
  for (const Turn& turn : turns_) {
    AppendMessage(body, "user", turn.question);
    AppendMessage(body, "assistant", turn.answer);
  }
  AppendMessage(body, "user", question);
  body += ']';
  if (options_.temperature.has_value()) {
    char number[32];
    std::snprintf(number, sizeof(number), "%g", *options_.temperature);
    body += std::string(",\"temperature\":") + number;
  }
  if (options_.max_tokens > 0) body += ",\"max_tokens\":" + std::to_string(options_.max_tokens);
  return body + ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
}

AnswerEnd Conversation::Ask(std::string question, InterruptScope* interrupt,
                            const std::function<void(std::string_view, bool)>& on_text) {
  Receiver receiver{on_text, {}, SseParser(), {}, {}, {}};
  HttpCall call;
  call.url = ApiUrl(server_, "/chat/completions");
  call.headers = ApiHeaders(server_);
  call.body = RequestBody(question);
  call.timeout_seconds = 3600;
  call.on_body = [&](long status, std::string_view bytes) {
    return receiver.OnBody(status, bytes);
  };
  HttpClient client(1);
  bool finished = false;
  HttpOutcome outcome;
  const uint64_t id = client.Start(std::move(call), [&](const HttpOutcome& end) {
    outcome = end;
    finished = true;
  });
  while (!finished) {
    if (interrupt != nullptr && interrupt->Take()) client.Abort(id);
    client.Poll(std::chrono::milliseconds(60000), interrupt == nullptr ? -1 : interrupt->fd());
  }
  receiver.end.status = StatusOf(server_, outcome, receiver);
  const bool keep = receiver.end.status.ok() ||
                    (absl::IsCancelled(receiver.end.status) && !receiver.answer.empty());
  if (keep) turns_.push_back({std::move(question), std::move(receiver.answer)});
  return std::move(receiver.end);
}

}  // namespace hexad
