#pragma once

// The messages of one chat, and one question answered by a streaming server.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/client/api.h"
#include "server/client/chat_stream.h"

namespace hexad {

class InterruptScope;

struct ChatOptions {
  std::string model;
  std::optional<double> temperature;  // nullopt: the server's default
  int64_t max_tokens = 0;             // 0: the server's default
};

struct AnswerEnd {
  // OK, Cancelled (interrupted), Unavailable (no server, stream broke off), else what the server
  // said. What was shown before stays shown.
  absl::Status status;
  std::string finish_reason;
  std::optional<TokenUsage> usage;
};

class Conversation final {
 public:
  Conversation(ApiServer server, ChatOptions options)
      : server_(std::move(server)), options_(std::move(options)) {}

  void SetSystem(std::string text) { system_ = std::move(text); }
  void Reset() { turns_.clear(); }
  // Asks, with all turns before. `on_text` gets the answer in pieces; reasoning comes with
  // `is_reasoning`. A question that failed leaves no trace; an interrupted answer stays as far as
  // it came. `interrupt` may be null.
  AnswerEnd Ask(std::string question, InterruptScope* interrupt,
                const std::function<void(std::string_view text, bool is_reasoning)>& on_text);

  size_t num_turns() const { return turns_.size(); }
  std::string RequestBody(std::string_view question) const;

 private:
  struct Turn {
    std::string question;
    std::string answer;
  };
  ApiServer server_;
  ChatOptions options_;
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace hexad
