#include "tests/server/chat_template/render_helper.h"

#include <nlohmann/json.hpp>

namespace hexad {
namespace {

TemplateValue Convert(const nlohmann::ordered_json& json) {
  if (json.is_null()) return TemplateValue::None();
  if (json.is_boolean()) return TemplateValue(json.get<bool>());
  if (json.is_number_integer()) return TemplateValue(json.get<int64_t>());
  if (json.is_number()) return TemplateValue(json.get<double>());
  if (json.is_string()) return TemplateValue(json.get<std::string>());
  if (json.is_array()) {
    TemplateValue::List list;
    for (const auto& item : json) list.push_back(Convert(item));
    return TemplateValue(std::move(list));
  }
  TemplateDict dict;
  for (const auto& [key, value] : json.items()) dict.Set(TemplateValue(key), Convert(value));
  return TemplateValue(std::move(dict));
}

}  // namespace

TemplateValue FromJson(const std::string& json) {
  return Convert(nlohmann::ordered_json::parse(json));
}

std::string RenderedWith(std::string_view source, const TemplateInput& input) {
  const auto parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return "error: " + std::string(parsed.status().message());
  const auto text = (*parsed)->Render(input);
  return text.ok() ? *text : "error: " + std::string(text.status().message());
}

std::string Rendered(std::string_view source, Variables variables) {
  TemplateInput input;
  input.extra = std::move(variables);
  return RenderedWith(source, input);
}

TemplateValue Messages(std::initializer_list<std::pair<const char*, const char*>> turns) {
  TemplateValue::List messages;
  for (const auto& [role, content] : turns) {
    messages.emplace_back(TemplateDict{{"role", role}, {"content", content}});
  }
  return TemplateValue(std::move(messages));
}

}  // namespace hexad
