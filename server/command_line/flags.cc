#include "server/command_line/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace hexad {
namespace {

template <typename Number>
bool ParseNumber(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

absl::Status BadValue(const std::string& name, std::string_view value, const char* wanted) {
  return absl::InvalidArgumentError("--" + name + " wants " + wanted + ", not \"" +
                                    std::string(value) + "\"");
}

}  // namespace

FlagSet::FlagSet(std::string usage, std::string about, std::string examples)
    : usage_(std::move(usage)), about_(std::move(about)), examples_(std::move(examples)) {}

void FlagSet::Add(std::string_view name, std::string* target, std::string_view value_name,
                  std::string_view help) {
  flags_.push_back({std::string(name), target, std::string(value_name), std::string(help)});
}
void FlagSet::Add(std::string_view name, int64_t* target, std::string_view value_name,
                  std::string_view help) {
  flags_.push_back({std::string(name), target, std::string(value_name), std::string(help)});
}
void FlagSet::Add(std::string_view name, double* target, std::string_view value_name,
                  std::string_view help) {
  flags_.push_back({std::string(name), target, std::string(value_name), std::string(help)});
}
void FlagSet::Add(std::string_view name, bool* target, std::string_view help) {
  flags_.push_back({std::string(name), target, "", std::string(help)});
}

const FlagSet::Flag* FlagSet::Find(std::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

std::string FlagSet::Closest(std::string_view name) const {
  std::string best;
  size_t best_distance = 4;
  for (const Flag& flag : flags_) {
    const size_t distance = EditDistance(name.substr(0, 64), flag.name);
    if (distance < best_distance) {
      best_distance = distance;
      best = flag.name;
    }
  }
  return best;
}

absl::StatusOr<FlagSet::Parsed> FlagSet::Parse(std::span<const std::string> args) const {
  Parsed parsed;
  for (const std::string& arg : args) {
    if (arg == "--") break;
    if (arg == "--help" || arg == "-h") {
      parsed.help = true;
      return parsed;
    }
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      parsed.positional.insert(parsed.positional.end(), args.begin() + i + 1, args.end());
      break;
    }
    if (arg.size() < 2 || arg[0] != '-') {
      parsed.positional.push_back(arg);
      continue;
    }
    if (arg.compare(0, 2, "--") != 0) {
      return absl::InvalidArgumentError("unknown option \"" + arg + "\"; options are long: --help");
    }
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    const bool negated = name.compare(0, 3, "no-") == 0 && Find(name) == nullptr;
    const Flag* flag = Find(negated ? name.substr(3) : name);
    if (flag == nullptr || (negated && !std::holds_alternative<bool*>(flag->target))) {
      const std::string closest = Closest(name);
      return absl::InvalidArgumentError(
          "unknown option --" + name +
          (closest.empty() ? "" : "; did you mean --" + closest + "?"));
    }
    if (bool* const* target = std::get_if<bool*>(&flag->target)) {
      if (equals != std::string::npos) {
        return absl::InvalidArgumentError("--" + name + " takes no value");
      }
      **target = !negated;
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = arg.substr(equals + 1);
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return absl::InvalidArgumentError("--" + name + " wants a value: --" + name + " " +
                                        flag->value_name);
    }
    if (std::string* const* target = std::get_if<std::string*>(&flag->target)) {
      **target = value;
    } else if (int64_t* const* target = std::get_if<int64_t*>(&flag->target)) {
      if (!ParseNumber(value, *target)) return BadValue(name, value, "a whole number");
    } else if (double* const* target = std::get_if<double*>(&flag->target)) {
      double number = 0;
      if (!ParseNumber(value, &number) || !std::isfinite(number)) {
        return BadValue(name, value, "a number");
      }
      **target = number;
    }
  }
  return parsed;
}

std::string FlagSet::Help() const {
  std::string help = "Usage: " + usage_ + "\n\n" + about_ + "\n";
  if (!flags_.empty()) help += "\nOptions:\n";
  for (const Flag& flag : flags_) {
    std::string left = "  --" + flag.name;
    if (!flag.value_name.empty()) left += " " + flag.value_name;
    left.resize(std::max<size_t>(left.size() + 2, 30), ' ');
    std::string default_text;
    if (std::string* const* target = std::get_if<std::string*>(&flag.target)) {
      default_text = **target;
    } else if (int64_t* const* target = std::get_if<int64_t*>(&flag.target)) {
      default_text = std::to_string(**target);
    } else if (double* const* target = std::get_if<double*>(&flag.target)) {
      default_text = NumberText(**target);
    }
    help += left + flag.help;
    if (!default_text.empty()) help += " [" + default_text + "]";
    help += "\n";
  }
  if (!examples_.empty()) help += "\nExamples:\n" + examples_;
  if (help.back() != '\n') help += '\n';
  return help;
}

absl::StatusOr<double> ParseSeconds(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
  double scale = 1;
  std::string_view digits = text;
  for (const auto& [unit, seconds] : kUnits) {
    if (text.size() > unit.size() && text.substr(text.size() - unit.size()) == unit) {
      digits = text.substr(0, text.size() - unit.size());
      scale = seconds;
      break;
    }
  }
  double value = 0;
  if (!ParseNumber(digits, &value) || !std::isfinite(value) || value < 0 || value > 1e9) {
    return absl::InvalidArgumentError("\"" + std::string(text) +
                                      "\" is not a length of time such as 30s, 5m or 250ms");
  }
  return value * scale;
}

}  // namespace hexad
