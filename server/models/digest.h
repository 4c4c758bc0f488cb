#pragma once

// SHA-256 of streams and files (OpenSSL), as lower-case hexadecimal.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct evp_md_ctx_st;

namespace hexad {

class Sha256 final {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Update(std::span<const char> bytes);
  // Ends the digest; call once.
  std::string Hex();

 private:
  evp_md_ctx_st* context_;
};

absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

// 64 hexadecimal digits, in either case.
bool IsSha256(std::string_view text);

// OK when equal; else DataLoss that names both sums and `what`.
absl::Status CompareSha256(std::string_view what, std::string_view expected,
                           std::string_view actual);

}  // namespace hexad
