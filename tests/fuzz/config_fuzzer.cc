// Any text is a configuration that prints and reads back to itself, or problems with places.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = hexad::ParseConfiguration(text, "fuzz.yaml");
  if (!parsed.ok()) {
    const std::string message(parsed.status().message());
    if (message.rfind("fuzz.yaml:", 0) != 0) std::abort();
    return 0;
  }
  const std::string printed = hexad::PrintConfiguration(*parsed);
  const auto again = hexad::ParseConfiguration(printed, "printed.yaml");
  if (!again.ok() || hexad::PrintConfiguration(*again) != printed) std::abort();
  return 0;
}
