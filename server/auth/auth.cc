#include "server/auth/auth.h"

#include <sys/stat.h>

#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "server/auth/key_hash.h"
#include "server/config/field.h"
#include "server/config/yaml_reader.h"

namespace hexad {
namespace {

constexpr char kDefaultTenant[] = "default";
constexpr size_t kMaxCredentialBytes = 512;

struct KeyEntry {
  std::string tenant;
  std::string name;
  std::string hash;
};

std::vector<Field> DescribeKey(KeyEntry& entry) {
  Field hash = TextField("hash", "What hexad keys new printed.", &entry.hash);
  hash.parse = [&entry](const std::string& text) -> std::string {
    if (!ParseKeyHash(text).has_value()) return "must be sha256: and 64 hexadecimal digits";
    entry.hash = text;
    return "";
  };
  return {NameField("tenant", "Whose key it is.", &entry.tenant).Required(),
          NameField("name", "What it is for.", &entry.name), std::move(hash).Required()};
}

// Scheme names are case-insensitive (RFC 7235).
bool EqualsIgnoreCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// The key of "Bearer KEY"; empty when the header is not that.
std::string_view BearerKey(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer";
  if (authorization.size() > kMaxCredentialBytes ||
      !EqualsIgnoreCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return {};
  }
  authorization.remove_prefix(kScheme.size());
  if (authorization.empty() || authorization.front() != ' ') return {};
  while (!authorization.empty() && authorization.front() == ' ') authorization.remove_prefix(1);
  while (!authorization.empty() && authorization.back() == ' ') authorization.remove_suffix(1);
  return authorization;
}

}  // namespace

// The keys of one reading of the file.
class KeyTable final {
 public:
  static absl::StatusOr<std::shared_ptr<const KeyTable>> Read(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadTextFile(path);
    if (!text.ok()) return text.status();
    std::vector<KeyEntry> entries;
    Field root = ListField<KeyEntry>("", "", &entries, DescribeKey);
    ReadResult result = ReadYaml(*text, path, root);
    std::map<std::string, size_t> seen;
    for (size_t i = 0; i < entries.size() && result.problems.empty(); ++i) {
      if (!seen.emplace(entries[i].hash, i).second) {
        result.problems.push_back(ProblemAt(result, path, "[" + std::to_string(i) + "].hash",
                                            "the same key is there twice"));
      }
    }
    if (result.problems.empty() && entries.empty()) {
      result.problems.push_back(path + ": has no keys; make one with hexad keys new --tenant NAME");
    }
    if (!result.problems.empty()) {
      return absl::InvalidArgumentError(absl::StrJoin(result.problems, "\n"));
    }
    auto table = std::make_shared<KeyTable>();
    for (KeyEntry& entry : entries) {
      table->keys_.emplace_back(ParseKeyHash(entry.hash).value_or(KeyHash{}),
                                std::move(entry.tenant));
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
      table->warnings_.push_back(path + " may be read or changed by others: chmod 600 it");
    }
    return table;
  }

  // Looks at every entry, so that the time does not tell which one was close.
  const std::string* FindTenant(std::string_view key) const {
    const KeyHash hash = HashKey(key);
    const std::string* tenant = nullptr;
    for (const auto& [known, owner] : keys_) {
      if (SameHash(known, hash)) tenant = &owner;
    }
    return tenant;
  }

  size_t size() const { return keys_.size(); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::pair<KeyHash, std::string>> keys_;
  std::vector<std::string> warnings_;
};

Authenticator::Authenticator(std::string path) : path_(std::move(path)) {}
Authenticator::~Authenticator() = default;

std::unique_ptr<Authenticator> Authenticator::Open() {
  return std::unique_ptr<Authenticator>(new Authenticator(""));
}

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::FromFile(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the path of the keys file is empty");
  std::unique_ptr<Authenticator> authenticator(new Authenticator(path));
  absl::Status status = authenticator->Reload();
  if (!status.ok()) return status;
  return authenticator;
}

absl::StatusOr<std::string> Authenticator::Authenticate(std::string_view authorization) const {
  if (open()) return std::string(kDefaultTenant);
  std::shared_ptr<const KeyTable> table;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    table = table_;
  }
  const std::string_view key = BearerKey(authorization);
  const std::string* tenant = table->FindTenant(key);
  if (tenant == nullptr || key.empty()) {
    return absl::UnauthenticatedError(
        "Missing or incorrect API key. Send it as \"Authorization: Bearer KEY\".");
  }
  return *tenant;
}

absl::Status Authenticator::Reload() {
  if (open()) return absl::OkStatus();
  auto table = KeyTable::Read(path_);
  if (!table.ok()) return table.status();
  const std::lock_guard<std::mutex> lock(mutex_);
  table_ = *std::move(table);
  return absl::OkStatus();
}

std::vector<std::string> Authenticator::warnings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return table_ == nullptr ? std::vector<std::string>() : table_->warnings();
}

size_t Authenticator::num_keys() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return table_ == nullptr ? 0 : table_->size();
}

absl::StatusOr<NewKey> MakeKey(std::string_view tenant, std::string_view name) {
  if (!IsName(tenant) || (!name.empty() && !IsName(name))) {
    return absl::InvalidArgumentError(
        "names of tenants and keys must be 1 to 128 letters, digits and ._/-");
  }
  std::optional<std::string> key = RandomKey();
  if (!key.has_value()) return absl::UnavailableError("the system has no randomness to give");
  NewKey made;
  made.line = "- {tenant: \"" + std::string(tenant) + "\", " +
              (name.empty() ? "" : "name: \"" + std::string(name) + "\", ") + "hash: \"" +
              FormatKeyHash(HashKey(*key)) + "\"}";
  made.key = *std::move(key);
  return made;
}

}  // namespace hexad
