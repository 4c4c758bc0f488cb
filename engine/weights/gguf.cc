#include "engine/weights/gguf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/weights/gguf_parser.h"

namespace hexad {
namespace {

absl::Status FileError(int error, const std::string& path, std::string_view doing) {
  return absl::ErrnoToStatus(error, absl::StrFormat("%s: cannot %s it", path, doing));
}

absl::Status Absent(const std::string& path, std::string_view key) {
  return absl::NotFoundError(absl::StrFormat("%s: no metadata \"%s\"", path, key));
}

absl::Status OtherType(const std::string& path, std::string_view key, std::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: metadata \"%s\" is no %s; convert the model again", path, key, wanted));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return FileError(errno, path, "open");
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    close(descriptor);
    return FileError(error, path, "examine");
  }
  if (!S_ISREG(status.st_mode) || status.st_size <= 0) {
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: not a regular file with anything in it; name a GGUF file", path));
  }
  const auto bytes = static_cast<size_t>(status.st_size);
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  close(descriptor);
  if (mapping == MAP_FAILED) return FileError(error, path, "map");

  std::unique_ptr<GgufFile> file(new GgufFile());
  file->path_ = path;
  file->mapping_ = mapping;
  file->mapping_bytes_ = bytes;
  const absl::Status parsed =
      GgufParser({static_cast<const std::byte*>(mapping), bytes}, *file).Parse();
  if (!parsed.ok()) return parsed;
  return file;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(std::span<const std::byte> bytes,
                                                          std::string_view name) {
  std::unique_ptr<GgufFile> file(new GgufFile());
  file->path_ = std::string(name);
  const absl::Status parsed = GgufParser(bytes, *file).Parse();
  if (!parsed.ok()) return parsed;
  return file;
}

GgufFile::~GgufFile() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void GgufFile::ReleasePages(std::span<const std::byte> bytes) const {
  if (mapping_ == nullptr || bytes.empty()) return;
  // Whole pages, neighbours' parts of them as well, who fetch them again like anybody.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto* const base = static_cast<const std::byte*>(mapping_);
  const size_t begin = static_cast<size_t>(bytes.data() - base) / page * page;
  const size_t end = static_cast<size_t>(bytes.data() - base) + bytes.size();
  // Refusal costs memory only.
  (void)madvise(static_cast<std::byte*>(mapping_) + begin, end - begin, MADV_DONTNEED);
}

void GgufFile::ReleasePages() const {
  ReleasePages({static_cast<const std::byte*>(mapping_), mapping_bytes_});
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto found = tensor_index_.find(std::string(name));
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

absl::StatusOr<std::string> GgufFile::String(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  if (found == metadata_.end()) return Absent(path_, key);
  const auto* value = std::get_if<std::string>(&found->second);
  if (value == nullptr) return OtherType(path_, key, "string");
  return *value;
}

absl::StatusOr<int64_t> GgufFile::Int(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  if (found == metadata_.end()) return Absent(path_, key);
  if (const auto* value = std::get_if<int64_t>(&found->second)) return *value;
  const auto* value = std::get_if<uint64_t>(&found->second);
  if (value == nullptr || *value > std::numeric_limits<int64_t>::max()) {
    return OtherType(path_, key, "64-bit integer");
  }
  return static_cast<int64_t>(*value);
}

absl::StatusOr<double> GgufFile::Float(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  if (found == metadata_.end()) return Absent(path_, key);
  const auto* value = std::get_if<double>(&found->second);
  if (value == nullptr) return OtherType(path_, key, "floating-point number");
  return *value;
}

absl::StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  if (found == metadata_.end()) return Absent(path_, key);
  const auto* value = std::get_if<bool>(&found->second);
  if (value == nullptr) return OtherType(path_, key, "bool");
  return *value;
}

const GgufArray* GgufFile::Array(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  if (found == metadata_.end()) return nullptr;
  const auto* value = std::get_if<std::unique_ptr<GgufArray>>(&found->second);
  return value == nullptr ? nullptr : value->get();
}

const std::vector<std::string>* GgufFile::Strings(std::string_view key) const {
  const GgufArray* array = Array(key);
  return array == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&array->items);
}

}  // namespace hexad
