#include "server/chat/command.h"

#include <memory>
#include <string_view>

#include "server/chat/conversation.h"
#include "server/chat/line_reader.h"
#include "server/client/interrupt.h"
#include "server/client/json_text.h"
#include "server/command_line/flags.h"

namespace hexad {
namespace {

constexpr char kHelpInside[] =
    "  /help           this\n"
    "  /reset          forget what was said\n"
    "  /system TEXT    instruct the model from now on; empty: no instruction\n"
    "  /quit           leave (so does Ctrl-D)\n"
    "  Ctrl-C          stop the answer\n"
    "  a line that ends in \\ goes on in the next\n";

class Session final {
 public:
  Session(Conversation& conversation, const ChatEnvironment& environment, std::ostream& out,
          std::ostream& err)
      : conversation_(conversation),
        environment_(environment),
        out_(out),
        err_(err),
        reader_(environment.input_fd) {
    if (environment.terminal) interrupt_ = std::make_unique<InterruptScope>();
  }

  // Until the input ends or /quit.
  int Run();

 private:
  // False: leave.
  bool Command(const std::string& line);
  void Answer(const std::string& question);
  void Prompt(const char* text) {
    if (environment_.terminal) out_ << text << std::flush;
  }

  Conversation& conversation_;
  const ChatEnvironment& environment_;
  std::ostream& out_;
  std::ostream& err_;
  LineReader reader_;
  std::unique_ptr<InterruptScope> interrupt_;
  bool failed_ = false;
};

bool Session::Command(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  std::ostream& notes = environment_.terminal ? out_ : err_;
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    notes << kHelpInside;
  } else if (name == "/reset") {
    conversation_.Reset();
    notes << "(forgotten)\n";
  } else if (name == "/system") {
    conversation_.SetSystem(rest);
    notes << (rest.empty() ? "(no instruction)\n" : "(understood)\n");
  } else {
    notes << "no command " << Printable(name) << "; there are:\n" << kHelpInside;
  }
  return true;
}

void Session::Answer(const std::string& question) {
  bool reasoning = false;
  const AnswerEnd end =
      conversation_.Ask(question, interrupt_.get(), [&](std::string_view text, bool is_reasoning) {
        if (!environment_.terminal) {
          if (!is_reasoning) out_ << text << std::flush;
          return;
        }
        if (is_reasoning != reasoning) out_ << (is_reasoning ? "\033[2m" : "\033[0m\n\n");
        reasoning = is_reasoning;
        out_ << Printable(text) << std::flush;
      });
  if (reasoning) out_ << "\033[0m";
  out_ << "\n" << std::flush;
  if (absl::IsCancelled(end.status)) {
    out_ << "(stopped)\n";
  } else if (!end.status.ok()) {
    failed_ = true;
    err_ << "hexad chat: " << Printable(std::string(end.status.message())) << "\n" << std::flush;
  } else if (environment_.terminal && end.finish_reason == "length") {
    out_ << "(cut at the limit of tokens)\n";
  }
}

int Session::Run() {
  Prompt("Ask; /help shows what else there is.\n");
  std::string question;
  for (;;) {
    Prompt(question.empty() ? "> " : ". ");
    std::string line;
    const LineReader::Result result = reader_.Read(interrupt_.get(), &line);
    if (result == LineReader::Result::kInterrupted) {
      question.clear();
      Prompt("\n(/quit leaves)\n");
      continue;
    }
    if (result == LineReader::Result::kEnd) break;
    if (!line.empty() && line.back() == '\\') {
      question += line.substr(0, line.size() - 1) + "\n";
      continue;
    }
    question += line;
    if (question.find_first_not_of(" \t\n") == std::string::npos) {
      question.clear();
      continue;
    }
    if (question[0] == '/') {
      if (!Command(question)) break;
    } else {
      Answer(question);
    }
    question.clear();
  }
  Prompt("\n");
  return failed_ && !environment_.terminal ? 1 : 0;
}

}  // namespace

int ChatCommand(std::span<const std::string> args, const ChatEnvironment& environment,
                std::ostream& out, std::ostream& err) {
  FlagSet flags("hexad chat [options]",
                "Chats with a server in the terminal. Without a terminal, every line of the input "
                "is a question.",
                "  hexad chat\n"
                "  hexad chat --system 'Answer in one sentence.' --temperature 0\n"
                "  hexad chat --url https://example.org --model NAME --api-key KEY\n"
                "  echo 'What is a KV cache?' | hexad chat\n");
  ApiServer server{"http://127.0.0.1:8000", environment.api_key};
  ChatOptions options;
  options.model = "auto";
  std::string system;
  std::string temperature;
  std::string api_key;
  flags.Add("url", &server.url, "URL", "the server");
  flags.Add("model", &options.model, "NAME", "a model of it; auto: its first");
  flags.Add("system", &system, "TEXT", "instruct the model");
  flags.Add("temperature", &temperature, "T", "0 to 2; not given: the server decides");
  flags.Add("max-tokens", &options.max_tokens, "N", "of an answer; 0: the server decides");
  flags.Add("api-key", &api_key, "KEY", "else HEXAD_API_KEY or OPENAI_API_KEY");
  const auto misused = [&](std::string_view message) {
    err << "hexad chat: " << message << "\n";
    return 2;
  };
  absl::StatusOr<FlagSet::Parsed> parsed = flags.Parse(args);
  if (!parsed.ok()) return misused(std::string(parsed.status().message()));
  if (parsed->help) {
    out << flags.Help() << "\nInside:\n" << kHelpInside;
    return 0;
  }
  if (!parsed->positional.empty()) return misused("unexpected \"" + parsed->positional[0] + "\"");
  if (!temperature.empty()) {
    char* end = nullptr;
    options.temperature = std::strtod(temperature.c_str(), &end);
    if (*end != 0 || !(*options.temperature >= 0 && *options.temperature <= 2)) {
      return misused("--temperature is 0 to 2, not \"" + temperature + "\"");
    }
  }
  if (options.max_tokens < 0) return misused("--max-tokens is 0 or more");
  if (!api_key.empty()) server.api_key = api_key;
  if (options.model == "auto") {
    absl::StatusOr<std::string> model = AskForModel(server);
    if (!model.ok()) {
      err << "hexad chat: " << Printable(std::string(model.status().message())) << "\n";
      return 1;
    }
    options.model = *std::move(model);
    if (environment.terminal) out << "model " << Printable(options.model) << "\n";
  }
  Conversation conversation(server, options);
  conversation.SetSystem(system);
  return Session(conversation, environment, out, err).Run();
}

}  // namespace hexad
