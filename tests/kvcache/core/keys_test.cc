// The golden values come from another implementation, in Python:
//
//   prk = hmac.new(b'\0'*32, b'server secret', sha256).digest()
//   salt = hmac.new(prk, b'tenant-a' + b'\1', sha256).digest()
//   root = sha256(b'hexad kv root 1' + b''.join(struct.pack('<Q', len(p)) + p
//                 for p in (b'model', b'adapter', salt))).digest()[:16]
//   unit = lambda parent, tokens, extra=b'': sha256(
//       parent + struct.pack('<16i', *tokens) + extra).digest()[:16]
//
// They must never change: keys are kept on disk and compared between machines.

#include "kvcache/core/keys.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace hexad {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

ContentKey Key(uint64_t high, uint64_t low) { return {high, low}; }

std::vector<TokenId> Count(int32_t num_tokens) {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < num_tokens; ++i) tokens.push_back(TokenId{i});
  return tokens;
}

const std::string kSalt = DeriveTenantSalt("server secret", "tenant-a");
const ContentKey kRoot = RootKey("model", "adapter", kSalt);

TEST(Keys, AreTheSameForEver) {
  EXPECT_EQ(Hex(kSalt), "21938958d245d64346a6c29f876fed92ee72ef962dec25d2af2134ce926f84e8");
  EXPECT_EQ(kRoot, Key(0xc767b44959e3eca6, 0x2865f47a58b17309));
  EXPECT_EQ(UnitKeys(kRoot, Count(32)),
            (std::vector<ContentKey>{Key(0x08e59a4ba69379bd, 0x7975248810f6a791),
                                     Key(0xc7b8598422365eca, 0x9aaf768c4a0f4848)}));
  EXPECT_EQ(UnitKey(kRoot, Count(16), "image"), Key(0xde6bae0b422cf421, 0x7e43c1337fd5b0ca));
  std::vector<TokenId> large(16, TokenId{70000});
  large.back() = TokenId{0x7fffffff};
  EXPECT_EQ(UnitKey(kRoot, large), Key(0x9030661577f298e5, 0xec84fd7908333fba));
}

TEST(Keys, OnlyFullUnitsHaveOne) {
  EXPECT_TRUE(UnitKeys(kRoot, Count(15)).empty());
  EXPECT_EQ(UnitKeys(kRoot, Count(47)).size(), 2u);
}

TEST(Keys, ExtendContinuesTheChain) {
  std::vector<ContentKey> keys;
  for (int32_t length = 0; length <= 100; length += 7) {
    ExtendKeys(kRoot, Count(length), keys);
    EXPECT_EQ(keys, UnitKeys(kRoot, Count(length)));
  }
}

TEST(Keys, EverythingBeforeAndAroundCounts) {
  std::vector<TokenId> other = Count(32);
  other[0] = TokenId{5};
  std::set<ContentKey> keys = {
      UnitKeys(kRoot, Count(32)).back(),
      UnitKeys(kRoot, other).back(),
      UnitKeys(RootKey("model 2", "adapter", kSalt), Count(32)).back(),
      UnitKeys(RootKey("model", "adapter 2", kSalt), Count(32)).back(),
      UnitKeys(RootKey("model", "adapter", DeriveTenantSalt("server secret", "tenant-b")),
               Count(32))
          .back(),
      UnitKeys(RootKey("model", "adapter", DeriveTenantSalt("another", "tenant-a")), Count(32))
          .back(),
      // The same bytes, cut elsewhere.
      UnitKeys(RootKey("modela", "dapter", kSalt), Count(32)).back(),
  };
  EXPECT_EQ(keys.size(), 7u);
}

}  // namespace
}  // namespace hexad
