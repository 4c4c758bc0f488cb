#pragma once

// A scratch folder, a Progress that is read back, a hub that serves one file, and wheels.

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "server/models/download.h"
#include "server/models/progress.h"
#include "tests/server/support/fake_http_server.h"

namespace hexad {

class ScratchFolder final {
 public:
  ScratchFolder();
  ~ScratchFolder();
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::vector<std::string> Names() const;  // of files below, relative, sorted

 private:
  std::string path_;
};

class RecordedProgress final {
 public:
  explicit RecordedProgress(bool terminal = false) : progress_(text_, terminal) {}
  Progress& get() { return progress_; }
  std::string Text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  Progress progress_;
};

void WriteText(const std::string& path, std::string_view text);
std::string ReadText(const std::string& path);
bool Exists(const std::string& path);

// `size` bytes that begin like a GGUF file and repeat nowhere early; equal for equal arguments.
std::string FakeGguf(size_t size, unsigned seed = 1);
std::string Sha256Of(std::string_view text);

// Quick limits for tests: tiny delays, few attempts.
DownloadLimits TestLimits();

// Answers a GET for `body`, honouring Range with If-Range against `etag`.
void ServeRange(const FakeRequest& request, FakeConnection& connection, std::string_view body,
                const std::string& etag);

struct FakeMember {
  std::string name;
  std::string text;
};
// A zip archive, deflated.
void WriteWheel(const std::string& path, const std::vector<FakeMember>& members);

// Puts scripts named python3 and pip3 first on PATH while it lives. `script` is the body of a
// POSIX shell script; $WHEELS is the folder of wheels, $DEST pip's -d, $REQUIREMENT the last
// argument.
class FakePip final {
 public:
  FakePip(std::string_view python3_script, std::string_view pip3_script);
  ~FakePip();
  std::string wheels() const { return folder_ / "wheels"; }
  std::string log() const { return folder_ / "log"; }

 private:
  ScratchFolder folder_;
  std::string old_path_;
};
// Copies the wheel that fits the requirement.
inline constexpr char kServeWheels[] =
    "name=$(echo \"$REQUIREMENT\" | sed 's/==/-/; s/-\\([0-9]\\)/@\\1/; s/-/_/g; s/@/-/')\n"
    "mkdir -p \"$DEST\" && cp \"$WHEELS\"/$name*.whl \"$DEST\"/ || {\n"
    "  echo \"ERROR: No matching distribution found for $REQUIREMENT\" >&2; exit 1; }\n";

}  // namespace hexad
