#pragma once

// Content keys: who may share which KV.
//
//   key(unit i) = first 128 bits of SHA-256(key(unit i-1), 16 token ids, extra keys)
//
// with key(unit -1) = RootKey(model, adapter, tenant salt). Keys are big-endian, token ids
// little-endian int32, so every process, machine and restart makes the same ones. A key stands for
// the unit's tokens and for everything before them; tenants never share a key, because their salts
// differ. Pure functions; any thread.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvcache/core/types.h"

namespace hexad {

// HKDF-SHA256 (RFC 5869) of the server's secret with the tenant as info: 32 bytes. Without the
// secret, nobody can compute the keys of another tenant's prompts.
std::string DeriveTenantSalt(std::string_view server_secret, std::string_view tenant);

// Where the chains of one (model, adapter, tenant) start. The parts are length-prefixed, so no two
// different triples give the same input.
ContentKey RootKey(std::string_view model_digest, std::string_view adapter_digest,
                   std::string_view tenant_salt);

// The key of one unit. `extra` names content that token ids do not, as an image's digest.
// REQUIRES: unit.size() == kUnitTokens.
ContentKey UnitKey(const ContentKey& parent, std::span<const TokenId> unit,
                   std::string_view extra = {});

// Keys of the full units of `tokens`; a tail shorter than a unit has none.
std::vector<ContentKey> UnitKeys(const ContentKey& root, std::span<const TokenId> tokens);

// Appends the keys of those full units of `tokens` that `keys`, made from a prefix of them, lacks.
// The object keeps what OpenSSL takes longer to set up than to hash a unit with. Not thread-safe.
class UnitHasher final {
 public:
  UnitHasher();
  ~UnitHasher();
  void Extend(const ContentKey& root, std::span<const TokenId> tokens,
              std::vector<ContentKey>& keys);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void ExtendKeys(const ContentKey& root, std::span<const TokenId> tokens,
                std::vector<ContentKey>& keys);

}  // namespace hexad
