#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "server/chat_template/chat_template.h"

namespace hexad {

using Variables = std::vector<std::pair<std::string, TemplateValue>>;

// The rendering of `source` with variables, or "error: " and the status message.
std::string Rendered(std::string_view source, Variables variables = {});
std::string RenderedWith(std::string_view source, const TemplateInput& input);
// [{"role": ..., "content": ...}, ...]
TemplateValue Messages(std::initializer_list<std::pair<const char*, const char*>> turns);
TemplateValue FromJson(const std::string& json);

}  // namespace hexad
