#pragma once

// The options of one `hexad` command: declared once with their help, parsed from the arguments
// that main hands over. `--name value`, `--name=value`, `--flag`, `--no-flag`; `--` ends options.
// Defaults are what the targets hold when Help() or Parse() is called.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace hexad {

class FlagSet final {
 public:
  // `usage` is the first line of the help ("hexad models pull NAME"), `about` a sentence or two,
  // `examples` the lines that teach, printed last.
  FlagSet(std::string usage, std::string about, std::string examples);

  // The target must outlive the set. `value_name` stands for the value in the help ("N", "URL").
  void Add(std::string_view name, std::string* target, std::string_view value_name,
           std::string_view help);
  void Add(std::string_view name, int64_t* target, std::string_view value_name,
           std::string_view help);
  void Add(std::string_view name, double* target, std::string_view value_name,
           std::string_view help);
  void Add(std::string_view name, bool* target, std::string_view help);

  struct Parsed {
    std::vector<std::string> positional;
    bool help = false;  // --help or -h was there; nothing else was checked
  };
  // InvalidArgument names the argument at fault and, for an unknown option, the closest known one.
  absl::StatusOr<Parsed> Parse(std::span<const std::string> args) const;

  std::string Help() const;

 private:
  using Target = std::variant<std::string*, int64_t*, double*, bool*>;
  struct Flag {
    std::string name;
    Target target;
    std::string value_name;
    std::string help;
  };
  const Flag* Find(std::string_view name) const;
  std::string Closest(std::string_view name) const;

  std::string usage_;
  std::string about_;
  std::string examples_;
  std::vector<Flag> flags_;
};

// A length of time as people write it: "90", "90s", "1.5m", "2h", "250ms". Seconds without a unit.
absl::StatusOr<double> ParseSeconds(std::string_view text);

}  // namespace hexad
