#include "server/bench/request_probe.h"

#include <utility>

namespace hexad {
namespace {
constexpr size_t kBodyLimit = size_t{64} << 20;
}  // namespace

void RequestProbe::Fail(std::string kind, std::string detail) {
  if (!record_.error_kind.empty()) return;  // the first one tells
  record_.error_kind = std::move(kind);
  record_.error_detail = std::move(detail);
}

void RequestProbe::OnPiece(const ChatPiece& piece, double now) {
  if (piece.kind == ChatPiece::Kind::kDone) {
    done_ = true;
    return;
  }
  if (piece.kind == ChatPiece::Kind::kError) return Fail("error_in_stream", piece.message);
  if (piece.kind == ChatPiece::Kind::kMalformed) return Fail("bad_answer", piece.message);
  if (!piece.finish_reason.empty()) finished_ = true;
  if (piece.usage.has_value()) {
    record_.counted_by_usage = true;
    record_.prompt_tokens = piece.usage->prompt_tokens;
    record_.cached_tokens = piece.usage->cached_tokens;
    record_.output_tokens = piece.usage->completion_tokens;
  }
  if (piece.text.empty() && piece.reasoning.empty()) return;
  if (++pieces_ == 1) {
    record_.first_token = now;
  } else {
    record_.gaps.push_back(static_cast<float>(now - last_text_));
  }
  last_text_ = now;
}

bool RequestProbe::OnBody(long status, std::string_view bytes, double now) {
  if (status != 200 || !stream_) {
    if (body_.size() + bytes.size() > kBodyLimit) {
      Fail("bad_answer", "the answer is too large");
      return false;
    }
    body_ += bytes;
    return true;
  }
  const bool fits =
      parser_.Feed(bytes, [&](const SseEvent& event) { OnPiece(decoder_.Event(event.data), now); });
  if (!fits) Fail("bad_answer", "an event of the stream is too large");
  return record_.error_kind.empty();
}

RequestRecord RequestProbe::Finish(const HttpOutcome& outcome, double now) {
  record_.end = now;
  if (outcome.status != 0 && outcome.status != 200) {
    Fail("http_" + std::to_string(outcome.status), ErrorMessageOf(body_));
  }
  switch (outcome.end) {
    case TransferEnd::kComplete:
      break;
    case TransferEnd::kNotConnected:
      Fail("connect", outcome.detail);
      break;
    case TransferEnd::kTimedOut:
      Fail("timeout", outcome.detail);
      break;
    case TransferEnd::kBroken:
      Fail(outcome.status == 0 ? "connect" : "broken_stream", outcome.detail);
      break;
    case TransferEnd::kAborted:
      Fail("aborted", "stopped before its end");
      break;
  }
  if (record_.error_kind.empty() && !stream_) {
    const ChatPiece piece = decoder_.Answer(body_);
    OnPiece(piece, now);
    record_.first_token = 0;
    if (!finished_) Fail("bad_answer", "an answer without a finish_reason");
  } else if (record_.error_kind.empty() && !done_ && !finished_) {
    Fail("broken_stream", "the stream ended without a finish_reason or [DONE]");
  }
  if (!record_.counted_by_usage) record_.output_tokens = stream_ ? pieces_ : 0;
  return std::move(record_);
}

}  // namespace hexad
