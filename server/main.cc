// The hexad binary: which command, with which arguments and environment. All else is in libraries.
// The only place that reads the environment.

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/auth/keys_command.h"
#include "server/bench/command.h"
#include "server/chat/command.h"
#include "server/config/config_command.h"
#include "server/models/command.h"
#include "server/serve_command.h"
#include "server/version.h"

namespace hexad {
namespace {

constexpr std::string_view kHelp =
    R"(hexad serves language models to agents: an OpenAI-compatible and a gRPC API over a
workflow-aware scheduler.

  hexad serve                 serve a small model on http://127.0.0.1:8000; fetches it first
  hexad serve --model FILE    serve a GGUF file of your own
  hexad chat                  talk to a running server in the terminal
  hexad bench                 load a server and measure TTFT, TPOT, throughput
  hexad bench engine|kernels|quality|step     measure this machine and a model, without a server
  hexad models pull|list|inspect|rm
  hexad config print|schema|explain|check|probe
  hexad keys new              make an API key
  hexad version

Each command has --help.
)";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

ModelsEnvironment ReadModelsEnvironment() {
  return {.home = Environment("HOME"),
          .xdg_cache_home = Environment("XDG_CACHE_HOME"),
          .hexad_cache = Environment("HEXAD_CACHE"),
          .hf_endpoint = Environment("HF_ENDPOINT"),
          .hf_token = Environment("HF_TOKEN"),
          .terminal = isatty(STDERR_FILENO) == 1};
}

std::string ReadApiKey() {
  const std::string key = Environment("HEXAD_API_KEY");
  return key.empty() ? Environment("OPENAI_API_KEY") : key;
}

ChatEnvironment ReadChatEnvironment() {
  return {.api_key = ReadApiKey(),
          .input_fd = STDIN_FILENO,
          .terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1};
}

BenchEnvironment ReadBenchEnvironment() {
  return {.api_key = ReadApiKey(), .terminal = isatty(STDERR_FILENO) == 1};
}

int Run(std::span<const std::string> args) {
  const std::string_view command = args.empty() ? std::string_view("help") : args.front();
  const std::span<const std::string> rest = args.empty() ? args : args.subspan(1);
  if (command == "serve") return ServeCommand(rest, ReadModelsEnvironment(), std::cout, std::cerr);
  if (command == "models") {
    return ModelsCommand(rest, ReadModelsEnvironment(), std::cout, std::cerr);
  }
  if (command == "chat") return ChatCommand(rest, ReadChatEnvironment(), std::cout, std::cerr);
  if (command == "bench") {
    return BenchCommand(rest, ReadBenchEnvironment(), std::cin, std::cout, std::cerr);
  }
  if (command == "config") return RunConfigCommand(rest, std::cout, std::cerr);
  if (command == "keys") return RunKeysCommand(rest, std::cout, std::cerr);
  if (command == "version" || command == "--version") {
    std::cout << "hexad " << kVersion << "\n";
    return 0;
  }
  if (command == "help" || command == "--help" || command == "-h") {
    std::cout << kHelp;
    return 0;
  }
  std::cerr << "hexad: there is no command '" << command << "'\n\n" << kHelp;
  return 2;
}

}  // namespace
}  // namespace hexad

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  return hexad::Run(args);
}
