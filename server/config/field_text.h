#pragma once

// A bound field tree as text: YAML, JSON schema, explanations, and the values by their paths.

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/config/field.h"

namespace hexad {

// Block YAML which reads back to the same values.
std::string PrintYaml(const Field& root);

// JSON Schema 2020-12; `title` is plain text.
std::string PrintSchema(const Field& root, std::string_view title);

// Type, default and meaning of the field or section at `path` ("models.name" or "models[].name").
absl::StatusOr<std::string> Explain(const Field& root, std::string_view path);
// One line a field.
std::string ExplainAllFields(const Field& root);

// The values of the fields for which `reloadable` is as given, by path; lists as their YAML.
std::map<std::string, std::string> FlatValues(const Field& root, bool reloadable);

}  // namespace hexad
