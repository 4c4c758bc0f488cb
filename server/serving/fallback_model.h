#pragma once

// The tiny model inside the binary, served when nothing can be fetched. docs/fallback-model.md.

#include <cstddef>
#include <span>
#include <string_view>

namespace hexad {

inline constexpr char kFallbackModelName[] = "hexad-tiny";
inline constexpr char kFallbackModelSource[] = "builtin:hexad-tiny";

inline bool IsFallbackModel(std::string_view source) { return source == kFallbackModelSource; }

// A GGUF file; lives as long as the process.
std::span<const std::byte> FallbackModelBytes();

}  // namespace hexad
