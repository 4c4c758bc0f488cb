#pragma once

// Reads YAML text into a bound field tree and tells every problem with its place. The only user of
// yaml-cpp; nothing throws out of it, and no text makes it allocate more than a small multiple of
// its size.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/field.h"

namespace hexad {

struct Place {
  int line = 0;  // from 1; 0: unknown
  int column = 0;
};

struct ReadResult {
  std::vector<std::string> problems;    // "name:line:column: message"; empty: all of it was read
  std::map<std::string, Place> places;  // of everything written: "models[0].name"
};

// `name` stands for the text in messages. Fields that are not written keep their values; a list or
// map that is written replaces the old one. After a problem the bound values are unspecified.
ReadResult ReadYaml(std::string_view text, std::string_view name, Field& root);

// "name:line:column: message" for a problem found later, at `path` or the nearest node above it.
std::string ProblemAt(const ReadResult& result, std::string_view name, std::string path,
                      std::string_view message);

// The whole file, at most 1 MiB.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace hexad
