#include "server/models/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <vector>

#include "server/models/file_io.h"

namespace hexad {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_, EVP_sha256(), nullptr);
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::Update(std::span<const char> bytes) {
  EVP_DigestUpdate(context_, bytes.data(), bytes.size());
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_, digest, &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(errno, "open", path);
  Sha256 digest;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return digest.Hex();
    digest.Update(std::span(buffer.data(), static_cast<size_t>(got)));
  }
}

bool IsSha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(),
                                          [](unsigned char c) { return std::isxdigit(c) != 0; });
}

absl::Status CompareSha256(std::string_view what, std::string_view expected,
                           std::string_view actual) {
  const bool equal = std::equal(
      expected.begin(), expected.end(), actual.begin(), actual.end(),
      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
  if (equal) return absl::OkStatus();
  return absl::DataLossError("the checksum of " + std::string(what) +
                             " is wrong: expected sha256 " + std::string(expected) + ", got " +
                             std::string(actual) + "; what was fetched is deleted");
}

}  // namespace hexad
