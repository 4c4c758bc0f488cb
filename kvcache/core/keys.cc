#include "kvcache/core/keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstring>
#include <memory>

#include "kvcache/core/check.h"

namespace hexad {
namespace {

constexpr std::string_view kRootLabel = "hexad kv root 1";

using Digest = std::array<unsigned char, 32>;

// One digest context for a run of hashes: setting one up costs more than hashing a unit.
class Sha256 final {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    HEXAD_CHECK(context_ != nullptr, "no memory for a digest context");
    HEXAD_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
                "SHA-256 is missing");
  }

  void Add(const void* data, size_t size) {
    HEXAD_CHECK(EVP_DigestUpdate(context_.get(), data, size) == 1, "SHA-256 failed");
  }
  void Add(std::string_view data) { Add(data.data(), data.size()); }

  // The key, after which the next hash begins.
  ContentKey TakeKey() {
    Digest digest;
    HEXAD_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1, "SHA-256 failed");
    HEXAD_CHECK(EVP_DigestInit_ex(context_.get(), nullptr, nullptr) == 1, "SHA-256 failed");
    ContentKey key;
    for (int i = 0; i < 8; ++i) key.high = key.high << 8 | digest[i];
    for (int i = 8; i < 16; ++i) key.low = key.low << 8 | digest[i];
    return key;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

ContentKey HashUnit(Sha256& sha, const ContentKey& parent, std::span<const TokenId> unit,
                    std::string_view extra) {
  HEXAD_CHECK(unit.size() == kUnitTokens, "a unit is exactly kUnitTokens long");
  std::array<unsigned char, 16 + 4 * kUnitTokens> input;
  for (int i = 0; i < 8; ++i) {
    input[i] = static_cast<unsigned char>(parent.high >> (56 - 8 * i));
    input[8 + i] = static_cast<unsigned char>(parent.low >> (56 - 8 * i));
  }
  unsigned char* out = input.data() + 16;
  for (TokenId token : unit) {
    const auto value = static_cast<uint32_t>(token);
    for (int i = 0; i < 4; ++i) *out++ = static_cast<unsigned char>(value >> (8 * i));
  }
  // The part before `extra` has a fixed length, so nothing is ambiguous.
  sha.Add(input.data(), input.size());
  sha.Add(extra);
  return sha.TakeKey();
}

Digest HmacSha256(const void* key, size_t key_size, std::string_view data) {
  Digest digest;
  unsigned int size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key, static_cast<int>(key_size),
           reinterpret_cast<const unsigned char*>(data.data()), data.size(), digest.data(), &size);
  HEXAD_CHECK(done != nullptr && size == digest.size(), "HMAC-SHA256 failed");
  return digest;
}

void AddWithLength(Sha256& sha, std::string_view data) {
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(data.size() >> (8 * i));
  sha.Add(length, sizeof(length));
  sha.Add(data);
}

}  // namespace

std::string DeriveTenantSalt(std::string_view server_secret, std::string_view tenant) {
  // RFC 5869 with no salt, which means zeros, and one block of output.
  const Digest no_salt{};
  const Digest extracted = HmacSha256(no_salt.data(), no_salt.size(), server_secret);
  const Digest salt = HmacSha256(extracted.data(), extracted.size(), std::string(tenant) + '\x01');
  return std::string(salt.begin(), salt.end());
}

ContentKey RootKey(std::string_view model_digest, std::string_view adapter_digest,
                   std::string_view tenant_salt) {
  Sha256 sha;
  sha.Add(kRootLabel);
  AddWithLength(sha, model_digest);
  AddWithLength(sha, adapter_digest);
  AddWithLength(sha, tenant_salt);
  return sha.TakeKey();
}

ContentKey UnitKey(const ContentKey& parent, std::span<const TokenId> unit,
                   std::string_view extra) {
  Sha256 sha;
  return HashUnit(sha, parent, unit, extra);
}

std::vector<ContentKey> UnitKeys(const ContentKey& root, std::span<const TokenId> tokens) {
  std::vector<ContentKey> keys;
  ExtendKeys(root, tokens, keys);
  return keys;
}

struct UnitHasher::State {
  Sha256 sha;
};

UnitHasher::UnitHasher() : state_(std::make_unique<State>()) {}
UnitHasher::~UnitHasher() = default;

void UnitHasher::Extend(const ContentKey& root, std::span<const TokenId> tokens,
                        std::vector<ContentKey>& keys) {
  const size_t units = tokens.size() / kUnitTokens;
  if (keys.size() >= units) return;
  if (keys.empty()) keys.reserve(units);  // later ones come singly: let the vector double
  while (keys.size() < units) {
    const ContentKey& parent = keys.empty() ? root : keys.back();
    keys.push_back(
        HashUnit(state_->sha, parent, tokens.subspan(keys.size() * kUnitTokens, kUnitTokens), {}));
  }
}

void ExtendKeys(const ContentKey& root, std::span<const TokenId> tokens,
                std::vector<ContentKey>& keys) {
  UnitHasher().Extend(root, tokens, keys);
}

}  // namespace hexad
