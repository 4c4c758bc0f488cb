#include "server/models/manifest.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace hexad {
namespace {

// Values come from hubs and wheels: one line, no control characters.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 32 || c == 127; }, ' ');
  return text;
}

}  // namespace

std::string WriteManifest(const StoredModel& model) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += std::string(key) + " " + OneLine(value) + "\n";
  };
  add("name", model.name);
  add("source", model.source);
  add("licence", model.licence);
  add("file", std::filesystem::path(model.path).filename().string());
  add("size", std::to_string(model.size));
  add("sha256", model.sha256);
  add("context", std::to_string(model.context));
  add("notes", model.notes);
  return text;
}

absl::StatusOr<StoredModel> ParseManifest(const std::string& text, const std::string& folder) {
  StoredModel model;
  std::string file;
  std::string size = "-1";
  std::string context = "0";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t space = std::min(line.find(' '), line.size());
    const std::string key = line.substr(0, space);
    const std::string value = space < line.size() ? line.substr(space + 1) : "";
    if (key == "name") model.name = value;
    if (key == "source") model.source = value;
    if (key == "licence") model.licence = value;
    if (key == "file") file = value;
    if (key == "size") size = value;
    if (key == "sha256") model.sha256 = value;
    if (key == "context") context = value;
    if (key == "notes") model.notes = value;
  }
  std::from_chars(size.data(), size.data() + size.size(), model.size);
  std::from_chars(context.data(), context.data() + context.size(), model.context);
  if (model.name.empty() || file.empty() || file.find('/') != std::string::npos || file == ".." ||
      model.size <= 0) {
    return absl::DataLossError("the manifest in " + folder + " is damaged");
  }
  model.path = folder + "/" + file;
  return model;
}

}  // namespace hexad
