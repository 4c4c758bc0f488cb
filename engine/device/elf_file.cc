#include "engine/device/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "add this machine's e_machine"
#endif

bool ReadAt(int file, void* to, size_t bytes, uint64_t offset) {
  return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// What is wrong with the file; nullptr when nothing is.
const char* Fault(int file, uint64_t file_bytes) {
  Elf64_Ehdr header;
  if (!ReadAt(file, &header, sizeof(header), 0)) return "too short";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "no ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return "made for another machine";
  }
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return "no shared object";
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (segments.empty() || header.e_phoff > file_bytes ||
      !ReadAt(file, segments.data(), segments.size() * sizeof(Elf64_Phdr), header.e_phoff)) {
    return "cut off";
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > file_bytes || segment.p_filesz > file_bytes - segment.p_offset)) {
      return "cut off";
    }
  }
  return nullptr;
}

}  // namespace

absl::Status CheckSharedObject(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const int error = errno;
    const std::string text = absl::StrFormat("%s cannot be opened: %s", path, strerror(error));
    if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
    return absl::FailedPreconditionError(text);
  }
  struct stat info = {};
  const char* fault = fstat(file, &info) != 0 || !S_ISREG(info.st_mode)
                          ? "no regular file"
                          : Fault(file, static_cast<uint64_t>(info.st_size));
  close(file);
  if (fault == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is no usable shared library: %s", path, fault));
}

}  // namespace hexad
