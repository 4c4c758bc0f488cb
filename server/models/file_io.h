#pragma once

// Files of the model cache: written beside their final name, synced, then renamed, so that a half
// file is never visible under its final name. Errors name the path; a full disk also the remedy.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace hexad {

// Owns a file descriptor. Move-only.
class FileDescriptor final {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }
  int get() const { return fd_; }
  void Close();

 private:
  int fd_ = -1;
};

// The status of a failed call on `path`: ResourceExhausted with what to do for ENOSPC, EDQUOT and
// EFBIG, NotFound, PermissionDenied, else Unavailable.
absl::Status FileError(int error_number, std::string_view doing, const std::string& path);

// A file being written at exactly `path`; give it a name of its own and rename it by Publish.
class WritableFile final {
 public:
  // Truncates, or keeps what is there and appends.
  static absl::StatusOr<WritableFile> Open(const std::string& path, bool append);
  absl::Status Append(std::span<const char> bytes);
  // Starts again from nothing.
  absl::Status Truncate();
  int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Syncs the bytes, gives them their final name in one step and syncs the folder.
  absl::Status Publish(const std::string& final_path);

 private:
  WritableFile(std::string path, FileDescriptor fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  std::string path_;
  FileDescriptor fd_;
  int64_t size_ = 0;
};

// An exclusive lock on `path` (made when absent), held by this object; the system drops it when the
// process ends. With `wait` false a taken lock is FailedPrecondition.
absl::StatusOr<FileDescriptor> LockFile(const std::string& path, bool wait);

// ResourceExhausted, with both numbers and the remedy, when the file system of `folder` has less
// than `bytes` and a small reserve free.
absl::Status CheckFreeSpace(const std::string& folder, int64_t bytes);

// At most `limit` bytes, else an error.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t limit);

absl::Status CheckGgufMagic(const std::string& path);

// "98.4 MB", "1.2 GB": decimal, as file sizes are given on download pages.
std::string HumanBytes(int64_t bytes);

}  // namespace hexad
