#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hexad {

using KeyHash = std::array<unsigned char, 32>;

// SHA-256 of "hexad-key-v1:" and the key.
KeyHash HashKey(std::string_view key);

// "sha256:" and 64 hexadecimal digits; nullopt when it is not that.
std::optional<KeyHash> ParseKeyHash(std::string_view text);
std::string FormatKeyHash(const KeyHash& hash);

// Takes the same time wherever they differ.
bool SameHash(const KeyHash& a, const KeyHash& b);

// "hxd_" and 43 of [A-Za-z0-9_-]: 256 bits of the operating system's randomness. nullopt when it
// has none.
std::optional<std::string> RandomKey();

}  // namespace hexad
