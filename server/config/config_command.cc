#include "server/config/config_command.h"

#include <algorithm>

#include "server/config/config.h"
#include "server/config/probe.h"
#include "server/config/values.h"

namespace hexad {
namespace {

constexpr char kUsage[] =
    "usage: hexad config COMMAND\n"
    "  print [FILE]     the configuration with all defaults filled in\n"
    "  check FILE       every problem of a file, with line and column\n"
    "  explain [FIELD]  what a field means; without a name, all of them\n"
    "  schema           the JSON schema of the file\n"
    "  probe            what this machine has: cores, instructions, memory, GPU\n";

int Complain(const absl::Status& status, std::ostream& err) {
  err << std::string(status.message()) << "\n";
  return 1;
}

int Print(const std::string* file, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Configuration> configuration =
      file == nullptr ? DefaultConfiguration() : LoadConfiguration(*file);
  if (!configuration.ok()) return Complain(configuration.status(), err);
  out << PrintConfiguration(*configuration);
  return 0;
}

int Check(const std::string& file, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Configuration> configuration = LoadConfiguration(file);
  if (!configuration.ok()) return Complain(configuration.status(), err);
  out << file << ": ok\n";
  return 0;
}

int ExplainOne(const std::string& field, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<std::string> text = ExplainField(field);
  if (!text.ok()) return Complain(text.status(), err);
  out << *text;
  return 0;
}

}  // namespace

int RunConfigCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  const std::string command = args.empty() ? "" : args[0];
  const std::string* operand = args.size() > 1 ? &args[1] : nullptr;
  const auto asks_for_help = [](const std::string& arg) { return arg == "--help" || arg == "-h"; };
  if (command == "help" || std::any_of(args.begin(), args.end(), asks_for_help)) {
    out << kUsage;
    return 0;
  }
  if (args.size() <= 2) {
    if (command == "print") return Print(operand, out, err);
    if (command == "check" && operand != nullptr) return Check(*operand, out, err);
    if (command == "explain" && operand != nullptr) return ExplainOne(*operand, out, err);
    if (command == "explain") {
      out << ExplainAll();
      return 0;
    }
    if (command == "schema" && operand == nullptr) {
      out << ConfigSchema();
      return 0;
    }
    if (command == "probe" && operand == nullptr) {
      out << FormatProbe(ProbeMachine());
      return 0;
    }
  }
  const std::vector<std::string> commands = {"print", "check", "explain", "schema", "probe"};
  const std::optional<std::string> nearest = NearestName(command, commands);
  if (nearest.has_value() && *nearest != command) {
    err << "no command config " << command << "; did you mean config " << *nearest << "?\n";
  }
  err << kUsage;
  return 2;
}

}  // namespace hexad
