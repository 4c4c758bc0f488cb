#pragma once

// `hexad chat`: a chat in the terminal with any OpenAI-compatible server.

#include <ostream>
#include <span>
#include <string>

namespace hexad {

// What main reads from the environment and the standard streams.
struct ChatEnvironment {
  std::string api_key;    // HEXAD_API_KEY, else OPENAI_API_KEY
  int input_fd = 0;       // questions come from here
  bool terminal = false;  // a person types and reads: prompts, Ctrl-C, no control characters
};

// Without a terminal: one question a line, the answers to `out`, everything else to `err`.
// Exit codes: 0, 1 (no server, or a question failed), 2 (misused).
int ChatCommand(std::span<const std::string> args, const ChatEnvironment& environment,
                std::ostream& out, std::ostream& err);

}  // namespace hexad
