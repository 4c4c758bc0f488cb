#include "tests/server/models/fixtures.h"

#include <stdlib.h>
#include <zip.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "server/models/digest.h"

namespace hexad {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  path_ = (fs::temp_directory_path() / "hexad-models-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> ScratchFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), path_).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void WriteText(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool Exists(const std::string& path) { return fs::exists(path); }

std::string FakeGguf(size_t size, unsigned seed) {
  std::string text = "GGUF";
  uint32_t state = seed;
  while (text.size() < size) {
    state = state * 1664525u + 1013904223u;
    text += static_cast<char>(state >> 24);
  }
  text.resize(size);
  return text;
}

std::string Sha256Of(std::string_view text) {
  Sha256 digest;
  digest.Update(text);
  return digest.Hex();
}

DownloadLimits TestLimits() {
  DownloadLimits limits;
  limits.max_bytes = 64 << 20;
  limits.max_attempts = 3;
  limits.stall_timeout_seconds = 1;
  limits.first_retry_delay = std::chrono::milliseconds(1);
  return limits;
}

void ServeRange(const FakeRequest& request, FakeConnection& connection, std::string_view body,
                const std::string& etag) {
  const std::string range = request.Header("range");
  size_t first = 0;
  if (range.empty() || request.Header("if-range") != etag) {
    connection.Respond(200, {{"ETag", etag}}, body);
    return;
  }
  if (std::sscanf(range.c_str(), "bytes=%zu-", &first) != 1 || first >= body.size()) {
    connection.Respond(416, {{"Content-Range", "bytes */" + std::to_string(body.size())}}, "");
    return;
  }
  connection.Respond(
      206,
      {{"ETag", etag},
       {"Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(body.size() - 1) +
                             "/" + std::to_string(body.size())}},
      body.substr(first));
}

void WriteWheel(const std::string& path, const std::vector<FakeMember>& members) {
  fs::create_directories(fs::path(path).parent_path());
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive == nullptr) std::abort();
  for (const FakeMember& member : members) {
    zip_source_t* source = zip_source_buffer(archive, member.text.data(), member.text.size(), 0);
    if (zip_file_add(archive, member.name.c_str(), source, ZIP_FL_ENC_UTF_8) < 0) std::abort();
  }
  if (zip_close(archive) != 0) std::abort();
}

FakePip::FakePip(std::string_view python3_script, std::string_view pip3_script) {
  const char* path = ::getenv("PATH");
  old_path_ = path == nullptr ? "" : path;
  fs::create_directories(wheels());
  for (const auto& [name, script] :
       {std::pair("python3", python3_script), std::pair("pip3", pip3_script)}) {
    const std::string file = folder_ / (std::string("bin/") + name);
    WriteText(file,
              "#!/bin/sh\n"
              "WHEELS='" +
                  wheels() +
                  "'\n"
                  "echo \"" +
                  name + " $*\" >> '" + log() +
                  "'\n"
                  "while [ $# -gt 1 ]; do [ \"$1\" = -d ] && DEST=$2; shift; done\n"
                  "REQUIREMENT=$1\n" +
                  std::string(script) + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  ::setenv("PATH", ((folder_ / "bin") + ":" + old_path_).c_str(), 1);
}

FakePip::~FakePip() { ::setenv("PATH", old_path_.c_str(), 1); }

}  // namespace hexad
