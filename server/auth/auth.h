#pragma once

// API keys and the tenants they stand for. A keys file is YAML:
//
//   - {tenant: acme, name: ci, hash: "sha256:5d41..."}
//
// Keys are `hxd_` and 256 random bits, so one SHA-256 with a fixed prefix ("hexad-key-v1:") is
// enough at rest: nothing can be guessed that a slow hash would protect. Only hashes are stored.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hexad {

class KeyTable;

// Thread-safe.
class Authenticator final {
 public:
  // Everybody is tenant "default"; credentials are not looked at.
  static std::unique_ptr<Authenticator> Open();
  // Errors name the file, line and column. Warnings (a file others may read) are in warnings().
  static absl::StatusOr<std::unique_ptr<Authenticator>> FromFile(const std::string& path);
  ~Authenticator();

  // `authorization` is the header's whole value ("Bearer hxd_..."), empty when absent. The tenant,
  // or Unauthenticated, with one and the same text whether the key is missing, malformed or wrong.
  absl::StatusOr<std::string> Authenticate(std::string_view authorization) const;

  // Reads the file again; on an error the keys stay as they were. Ok and without effect when open.
  absl::Status Reload();

  bool open() const { return path_.empty(); }
  std::vector<std::string> warnings() const;
  size_t num_keys() const;

 private:
  explicit Authenticator(std::string path);

  const std::string path_;  // empty: open
  mutable std::mutex mutex_;
  std::shared_ptr<const KeyTable> table_;
};

struct NewKey {
  std::string key;   // shown once, stored nowhere
  std::string line;  // to add to the keys file
};
// `tenant` and `name`: 1 to 128 of [A-Za-z0-9._/-]. `name` may be empty.
absl::StatusOr<NewKey> MakeKey(std::string_view tenant, std::string_view name);

}  // namespace hexad
