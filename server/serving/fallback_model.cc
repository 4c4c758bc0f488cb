#include "server/serving/fallback_model.h"

// HEXAD_FALLBACK_MODEL_FILE is the path of configs/models/hexad-tiny.gguf at build time.
asm(R"(
    .section .rodata
    .balign 64
    .type hexad_fallback_model_begin, @object
hexad_fallback_model_begin:
    .incbin ")" HEXAD_FALLBACK_MODEL_FILE R"("
hexad_fallback_model_end:
    .byte 0
    .previous
)");

extern "C" const std::byte hexad_fallback_model_begin[];
extern "C" const std::byte hexad_fallback_model_end[];

namespace hexad {

std::span<const std::byte> FallbackModelBytes() {
  return {hexad_fallback_model_begin, hexad_fallback_model_end};
}

}  // namespace hexad
