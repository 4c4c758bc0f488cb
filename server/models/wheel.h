#pragma once

// Reads single members of a Python wheel (a zip archive) through libzip. The wheel is data from
// the network: nothing in it is installed or run, no path in it becomes a path on disk, sizes are
// checked before and while unpacking, and a zip bomb is refused.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/digest.h"
#include "server/models/file_io.h"

struct zip;

namespace hexad {

struct WheelMember {
  std::string name;
  int64_t size = 0;
  int64_t compressed_size = 0;
};

class Wheel final {
 public:
  static absl::StatusOr<Wheel> Open(const std::string& path);

  // Members whose names are safe, directories left out. InvalidArgument when there are too many.
  absl::StatusOr<std::vector<WheelMember>> Members() const;
  // NotFound names some members that are there.
  absl::StatusOr<WheelMember> Find(const std::string& name) const;

  // Appends the member to `out` and its bytes to `digest`. REQUIRES nothing of the archive: a
  // member above `limit` bytes, with an absurd ratio, encrypted, with a wrong CRC or cut short is
  // an error (with what was appended still in `out`).
  absl::Status Extract(const std::string& name, int64_t limit, WritableFile& out,
                       Sha256& digest) const;
  // A small text member, at most 1 MiB.
  absl::StatusOr<std::string> ReadText(const std::string& name) const;

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };
  Wheel(std::string path, zip* archive) : path_(std::move(path)), archive_(archive) {}
  template <typename Sink>
  absl::Status ReadMember(const std::string& name, int64_t limit, Sink sink) const;

  std::string path_;
  std::unique_ptr<zip, Discard> archive_;
};

// False for names that could leave a folder or fool a reader: absolute, with "..", backslashes,
// control characters, or longer than 512 bytes.
bool IsSafeMemberName(const std::string& name);

}  // namespace hexad
