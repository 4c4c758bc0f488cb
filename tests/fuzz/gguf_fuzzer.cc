// A hostile model file is an error message, never a fault; what is accepted can be read whole.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/weights/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = hexad::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzzed.gguf");
  if (!file.ok()) return 0;
  unsigned sum = 0;
  for (const hexad::GgufTensor& tensor : (*file)->tensors()) {
    for (const std::byte b : tensor.data) sum += static_cast<unsigned>(b);
  }
  for (const auto& [key, value] : (*file)->metadata()) {
    (void)(*file)->Int(key);
    (void)(*file)->Float(key);
    (void)(*file)->String(key);
    sum += (*file)->Strings(key) != nullptr;
  }
  static volatile unsigned sink;
  sink = sum;
  return 0;
}
