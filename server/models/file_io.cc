#include "server/models/file_io.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace hexad {
namespace {

constexpr char kDiskRemedy[] =
    "; free some space (hexad models rm NAME) or put the cache on a larger disk with HEXAD_CACHE";
constexpr int64_t kReserveBytes = int64_t{16} << 20;

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileDescriptor::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

absl::Status FileError(int error_number, std::string_view doing, const std::string& path) {
  std::string text = "cannot " + std::string(doing) + " " + path + ": ";
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(text + "the disk is full" + kDiskRemedy);
    case EFBIG:
      return absl::ResourceExhaustedError(text + "larger than a file may be here" + kDiskRemedy);
    case ENOENT:
      return absl::NotFoundError(text + "no such file or folder");
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text + std::strerror(error_number) +
                                         "; HEXAD_CACHE moves the cache elsewhere");
    default:
      return absl::UnavailableError(text + std::strerror(error_number));
  }
}

absl::StatusOr<WritableFile> WritableFile::Open(const std::string& path, bool append) {
  // O_NOFOLLOW: a link planted under the temporary name must not lead the bytes elsewhere.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (append ? 0 : O_TRUNC);
  FileDescriptor fd(::open(path.c_str(), flags, 0644));
  if (fd.get() < 0) return FileError(errno, "create", path);
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size < 0) return FileError(errno, "seek in", path);
  return WritableFile(path, std::move(fd), size);
}

absl::Status WritableFile::Append(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError(errno, "write", path_);
    }
    size_ += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WritableFile::Truncate() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0) {
    return FileError(errno, "truncate", path_);
  }
  size_ = 0;
  return absl::OkStatus();
}

absl::Status WritableFile::Publish(const std::string& final_path) {
  if (::fsync(fd_.get()) != 0) return FileError(errno, "sync", path_);
  fd_.Close();
  if (::rename(path_.c_str(), final_path.c_str()) != 0) {
    return FileError(errno, "rename to", final_path);
  }
  const std::string folder = std::filesystem::path(final_path).parent_path().string();
  FileDescriptor folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd.get() < 0 || ::fsync(folder_fd.get()) != 0) {
    return FileError(errno, "sync", folder);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> LockFile(const std::string& path, bool wait) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (fd.get() < 0) return FileError(errno, "create", path);
  while (::flock(fd.get(), LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return absl::FailedPreconditionError("in use: " + path);
    return FileError(errno, "lock", path);
  }
  return fd;
}

absl::Status CheckFreeSpace(const std::string& folder, int64_t bytes) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return FileError(errno, "look at", folder);
  const auto free_bytes = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
  if (free_bytes >= static_cast<double>(bytes) + static_cast<double>(kReserveBytes)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      "not enough disk space in " + folder + ": " + HumanBytes(bytes) + " wanted, " +
      HumanBytes(static_cast<int64_t>(free_bytes)) + " free" + kDiskRemedy);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t limit) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(errno, "open", path);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return text;
    if (text.size() + static_cast<size_t>(got) > limit) {
      return absl::InvalidArgumentError(path + " is larger than " + std::to_string(limit) +
                                        " bytes");
    }
    text.append(buffer, static_cast<size_t>(got));
  }
}

absl::Status CheckGgufMagic(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(errno, "open", path);
  char magic[16] = {};
  const ssize_t got = ::read(fd.get(), magic, sizeof(magic));
  if (got < 0) return FileError(errno, "read", path);
  if (got >= 4 && std::memcmp(magic, "GGUF", 4) == 0) return absl::OkStatus();
  std::string seen;
  for (ssize_t i = 0; i < got; ++i) seen += magic[i] >= 32 && magic[i] < 127 ? magic[i] : '.';
  return absl::DataLossError(path + " is not a GGUF file: it begins with \"" + seen + "\"");
}

std::string HumanBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace hexad
