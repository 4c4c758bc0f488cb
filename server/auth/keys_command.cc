#include "server/auth/keys_command.h"

#include <algorithm>

#include "server/auth/auth.h"

namespace hexad {
namespace {

constexpr char kUsage[] =
    "usage: hexad keys new --tenant NAME [--name NAME]\n"
    "  Prints a new API key, once, and the line that lets it in.\n";

// --option VALUE or --option=VALUE at args[*at], which moves behind it.
bool TakeOption(std::span<const std::string> args, const std::string& option, size_t* at,
                std::string* value) {
  const std::string& arg = args[*at];
  if (arg == option && *at + 1 < args.size()) {
    *value = args[*at + 1];
    *at += 2;
    return true;
  }
  if (!arg.starts_with(option + "=")) return false;
  *value = arg.substr(option.size() + 1);
  *at += 1;
  return true;
}

}  // namespace

int RunKeysCommand(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  const auto asks_for_help = [](const std::string& arg) { return arg == "--help" || arg == "-h"; };
  if ((!args.empty() && args[0] == "help") ||
      std::any_of(args.begin(), args.end(), asks_for_help)) {
    out << kUsage;
    return 0;
  }
  std::string tenant;
  std::string name;
  bool understood = !args.empty() && args[0] == "new";
  for (size_t at = 1; understood && at < args.size();) {
    understood =
        TakeOption(args, "--tenant", &at, &tenant) || TakeOption(args, "--name", &at, &name);
  }
  if (!understood || tenant.empty()) {
    err << kUsage;
    return 2;
  }
  const absl::StatusOr<NewKey> made = MakeKey(tenant, name);
  if (!made.ok()) {
    err << std::string(made.status().message()) << "\n";
    return 1;
  }
  out << "The key, shown only now:\n\n  " << made->key
      << "\n\nAdd this line to the file that auth.keys_file names, and send SIGHUP or restart:\n\n"
      << made->line << "\n";
  return 0;
}

}  // namespace hexad
