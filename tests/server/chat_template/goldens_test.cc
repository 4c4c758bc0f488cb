// Real templates against what Python's Jinja renders, where HEXAD_DATA has them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/server/chat_template/render_helper.h"

namespace hexad {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TemplateInput InputOf(const std::string& context) {
  TemplateInput input;
  input.tools = TemplateValue();  // only what the context names is defined
  input.now = absl::FromCivil(absl::CivilSecond(2024, 7, 26, 12, 0, 0), absl::UTCTimeZone());
  const TemplateValue all = FromJson(context);
  for (const auto& [key, value] : all.dict().entries()) {
    input.extra.emplace_back(key.string(), value);
  }
  return input;
}

TEST(ChatTemplateGoldens, RealTemplatesRenderAsInPython) {
  const char* folder = std::getenv("HEXAD_DATA");
  const std::string data =
      (folder != nullptr ? folder : std::string(HEXAD_SOURCE_DIR) + "/../shared/data") +
      std::string("/chat-templates/");
  std::ifstream goldens(data + "goldens-jinja2/goldens-dev.jsonl");
  if (!goldens) GTEST_SKIP() << "no goldens under " << data;
  int passed = 0;
  int checked = 0;
  int left_out = 0;
  for (std::string line; std::getline(goldens, line);) {
    const auto golden = nlohmann::json::parse(line);
    const std::string name = golden["template"];
    const std::string context_name = golden["context"];
    const auto source = ReadFile(data + name);
    auto context = ReadFile(data + "minja-contexts/" + context_name + ".json");
    if (!context) context = ReadFile(data + "minja-contexts/derived-" + context_name + ".json");
    if (!source || !context) continue;
    std::string expected;
    if (golden.contains("output")) {
      expected = golden["output"];
    } else {
      // Of the errors only the template's own refusals are expected results.
      const std::string error = golden["error"];
      const std::string prefix = "TemplateError: ";
      if (error.rfind(prefix, 0) != 0) continue;
      expected = "error: " + error.substr(prefix.size());
    }
    // Jinja turns quotes into &#34; where this template joins tojson to a |safe text; we do not.
    if (name.find("functionary-medium-v3.1") != std::string::npos &&
        expected.find("&#34;") != std::string::npos) {
      ++left_out;
      continue;
    }
    ++checked;
    const std::string rendered = RenderedWith(*source, InputOf(*context));
    EXPECT_EQ(rendered, expected) << name << " with " << context_name;
    if (rendered == expected) ++passed;
  }
  EXPECT_GT(checked, 0);
  RecordProperty("passed", passed);
  std::cout << passed << " of " << checked << " renderings are equal, " << left_out
            << " left out\n";
}

}  // namespace
}  // namespace hexad
