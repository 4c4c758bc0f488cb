#include "server/grpc/generate_stream.h"

#include <utility>

#include "server/status.h"

namespace hexad {
namespace {

// Deltas of one choice that wait behind a write become one message, up to this size.
constexpr size_t kMaxMergedBytes = 16 << 10;

v1::Finish::Reason WireReason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::Finish::REASON_STOP;
    case FinishReason::kLength:
      return v1::Finish::REASON_LENGTH;
    case FinishReason::kCancelled:
      return v1::Finish::REASON_CANCELLED;
    case FinishReason::kFailed:
      return v1::Finish::REASON_FAILED;
  }
  return v1::Finish::REASON_UNSPECIFIED;
}

// Trailing metadata must be printable ASCII; names of fields and codes are.
void AddTrailer(grpc::ServerContextBase* context, const char* key, const std::string& value) {
  if (value.empty() || value.size() > 256) return;
  for (const char c : value) {
    if (c < 0x20 || c > 0x7e) return;
  }
  context->AddTrailingMetadata(key, value);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContextBase* context) {
  if (status.ok()) return grpc::Status::OK;
  const HttpError error = ToHttpError(status);
  std::string message = error.message;
  if (!error.param.empty() && message.find(error.param) == std::string::npos) {
    message += " (field " + error.param + ")";
  }
  AddTrailer(context, "hexad-param", error.param);
  AddTrailer(context, "hexad-code", error.code);
  if (error.retry_after_seconds > 0) {
    AddTrailer(context, "retry-after", std::to_string(error.retry_after_seconds));
  }
  // The canonical codes are the same numbers on both sides.
  const auto code = error.status >= 500 && error.status != 503 && error.status != 504
                        ? grpc::StatusCode::INTERNAL
                        : static_cast<grpc::StatusCode>(status.code());
  return grpc::Status(code, message);
}

std::shared_ptr<GenerateStream> GenerateStream::Create(const StreamContext& shared,
                                                       grpc::CallbackServerContext* context) {
  std::shared_ptr<GenerateStream> stream(new GenerateStream(shared, context));
  stream->self_ = stream;
  return stream;
}

void GenerateStream::Run(GenerateCall call) {
  std::shared_ptr<GenerateStream> sink;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    request_id_ = call.request_id;
    tenant_ = call.tenant;
    model_ = call.model;
    sink = self_;
  }
  const CallId id = shared_.serving.Start(std::move(call), std::move(sink));
  // The client may have gone while the call was being started.
  std::optional<CallId> cancel;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    call_ = id;
    cancel = TakeCancelLocked();
  }
  if (cancel.has_value()) shared_.serving.Cancel(*cancel);
}

void GenerateStream::Refuse(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  EndLocked(status);
}

void GenerateStream::OnAccepted(int32_t prompt_tokens) {
  v1::GenerateResponse message;
  message.mutable_accepted()->set_prompt_tokens(prompt_tokens);
  message.mutable_accepted()->set_request_id(request_id_);
  Push(std::move(message));
}

void GenerateStream::OnDelta(int32_t choice, TextDelta delta) {
  v1::GenerateResponse message;
  v1::Delta& wire = *message.mutable_delta();
  wire.set_choice(choice);
  wire.set_text(std::move(delta.text));
  for (const TokenId token : delta.tokens) wire.add_token_ids(static_cast<int32_t>(token));
  for (TextLogprob& logprob : delta.logprobs) {
    v1::Logprob& entry = *wire.add_logprobs();
    entry.set_token(std::move(logprob.bytes));
    entry.set_logprob(logprob.logprob);
    for (auto& [bytes, value] : logprob.top) {
      v1::TopLogprob& top = *entry.add_top();
      top.set_token(std::move(bytes));
      top.set_logprob(value);
    }
  }
  Push(std::move(message));
}

void GenerateStream::OnFinish(int32_t choice, FinishReason reason) {
  v1::GenerateResponse message;
  message.mutable_finish()->set_choice(choice);
  message.mutable_finish()->set_reason(WireReason(reason));
  Push(std::move(message));
}

void GenerateStream::OnEnd(const absl::Status& status, const Usage& usage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  usage_ = usage;
  if (status.ok()) {
    v1::GenerateResponse message;
    v1::Usage& wire = *message.mutable_usage();
    wire.set_prompt_tokens(usage.prompt_tokens);
    wire.set_cached_tokens(usage.cached_tokens);
    wire.set_completion_tokens(usage.completion_tokens);
    PushLocked(std::move(message));
  }
  EndLocked(status);
}

void GenerateStream::Push(v1::GenerateResponse message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PushLocked(std::move(message));
}

void GenerateStream::PushLocked(v1::GenerateResponse message) {
  if (ended_) return;
  const size_t bytes = message.ByteSizeLong();
  if (queued_bytes_ + bytes > shared_.max_pending_bytes) {
    // A reader this slow would hold memory without bound, and its write cannot be waited for.
    // OnCancel follows on a thread of gRPC and tells Serving.
    cancelled_ = true;
    context_->TryCancel();
    EndLocked(absl::ResourceExhaustedError("The client reads its stream too slowly."));
    return;
  }
  queued_bytes_ += bytes;
  if (!MergeLocked(message, bytes)) queue_.push_back({std::move(message), bytes});
  StartNextLocked();
}

bool GenerateStream::MergeLocked(const v1::GenerateResponse& message, size_t bytes) {
  if (!message.has_delta() || queue_.size() < (writing_ ? 2u : 1u)) return false;
  Pending& last = queue_.back();
  if (!last.message.has_delta() || last.message.delta().choice() != message.delta().choice() ||
      last.bytes + bytes > kMaxMergedBytes) {
    return false;
  }
  v1::Delta& into = *last.message.mutable_delta();
  into.mutable_text()->append(message.delta().text());
  into.mutable_token_ids()->MergeFrom(message.delta().token_ids());
  into.mutable_logprobs()->MergeFrom(message.delta().logprobs());
  last.bytes += bytes;
  return true;
}

// The first end holds: a refusal, the answer's own, or the client's going.
void GenerateStream::EndLocked(absl::Status status) {
  if (ended_) return;
  ended_ = true;
  status_ = std::move(status);
  // Nobody reads what waits; the message being written must stay until OnWriteDone.
  while (cancelled_ && queue_.size() > (writing_ ? 1u : 0u)) queue_.pop_back();
  StartNextLocked();
}

void GenerateStream::StartNextLocked() {
  if (writing_ || finished_) return;
  if (!queue_.empty()) {
    writing_ = true;
    StartWrite(&queue_.front().message);
  } else if (ended_) {
    finished_ = true;
    Finish(ToGrpcStatus(status_, context_));
  }
}

std::optional<CallId> GenerateStream::TakeCancelLocked() {
  if (!cancelled_ || !call_.has_value()) return std::nullopt;
  return std::exchange(call_, std::nullopt);
}

void GenerateStream::OnWriteDone(bool ok) {
  const std::lock_guard<std::mutex> lock(mutex_);
  writing_ = false;
  queued_bytes_ -= queue_.front().bytes;
  queue_.pop_front();
  if (!ok) {  // nothing more can be sent; OnCancel tells the end, or has
    queue_.clear();
    queued_bytes_ = 0;
  }
  StartNextLocked();
}

void GenerateStream::OnCancel() {
  std::optional<CallId> cancel;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    client_gone_ = !ended_;
    cancelled_ = true;
    EndLocked(absl::CancelledError("The client has cancelled the call."));
    cancel = TakeCancelLocked();
  }
  if (cancel.has_value()) shared_.serving.Cancel(*cancel);
}

void GenerateStream::OnDone() {
  Report();
  std::shared_ptr<GenerateStream> last;  // dies after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  last = std::move(self_);
}

void GenerateStream::Report() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (client_gone_) shared_.metrics.OnClientDisconnected();
  shared_.metrics.OnHttpRequest("/hexad.v1.Inference/Generate",
                                status_.ok() ? 200 : ToHttpError(status_).status);
  shared_.log.Info("grpc generate", {{"request", request_id_},
                                     {"tenant", tenant_},
                                     {"model", model_},
                                     {"status", status_},
                                     {"prompt_tokens", usage_.prompt_tokens},
                                     {"cached_tokens", usage_.cached_tokens},
                                     {"completion_tokens", usage_.completion_tokens}});
}

}  // namespace hexad
