#include "server/auth/key_hash.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

namespace hexad {
namespace {

constexpr std::string_view kHashPrefix = "hexad-key-v1:";
constexpr std::string_view kHashName = "sha256:";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

KeyHash HashKey(std::string_view key) {
  std::string text(kHashPrefix);
  text.append(key);
  KeyHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  OPENSSL_cleanse(text.data(), text.size());
  return hash;
}

std::optional<KeyHash> ParseKeyHash(std::string_view text) {
  KeyHash hash;
  if (!text.starts_with(kHashName) || text.size() != kHashName.size() + 2 * hash.size()) {
    return std::nullopt;
  }
  text.remove_prefix(kHashName.size());
  for (size_t i = 0; i < hash.size(); ++i) {
    const int high = HexDigit(text[2 * i]);
    const int low = HexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return hash;
}

std::string FormatKeyHash(const KeyHash& hash) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text(kHashName);
  for (const unsigned char byte : hash) {
    text.push_back(kHex[byte >> 4]);
    text.push_back(kHex[byte & 15]);
  }
  return text;
}

bool SameHash(const KeyHash& a, const KeyHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string> RandomKey() {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  std::array<unsigned char, 43> random;  // 6 bits of each are used
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return std::nullopt;
  std::string key = "hxd_";
  for (const unsigned char byte : random) key.push_back(kAlphabet[byte & 63]);
  OPENSSL_cleanse(random.data(), random.size());
  return key;
}

}  // namespace hexad
