// Any template source, rendered over a small chat: an output or an error, within the limits.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/chat_template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hexad::TemplateDict;
  using hexad::TemplateValue;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = hexad::ChatTemplate::Parse(source);
  if (!parsed.ok()) return 0;
  hexad::TemplateInput input;
  input.messages = TemplateValue(TemplateValue::List{
      TemplateValue(TemplateDict{{"role", "system"}, {"content", "s"}}),
      TemplateValue(TemplateDict{{"role", "user"}, {"content", " \xC3\xA9 <x> \n"}})});
  input.bos_token = "<s>";
  input.extra = {{"n", 3}, {"f", 1.5}, {"l", TemplateValue::List{1, "a", TemplateValue::None()}}};
  input.limits.max_steps = 20'000;
  input.limits.max_output_bytes = 1 << 16;
  input.limits.max_created_bytes = 1 << 20;
  const auto rendered = (*parsed)->Render(input);
  if (rendered.ok() && rendered->size() > input.limits.max_output_bytes) __builtin_trap();
  return 0;
}
