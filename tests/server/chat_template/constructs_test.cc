// Each construct against Python's Jinja2: tests/tools/make_template_goldens.py wrote the goldens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/server/chat_template/render_helper.h"

namespace hexad {
namespace {

TEST(Constructs, RenderAsInPython) {
  std::ifstream file(std::string(HEXAD_SOURCE_DIR) +
                     "/tests/golden/chat_template/constructs.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  TemplateInput input;
  input.messages = TemplateValue();
  input.tools = TemplateValue();
  input.now = absl::FromCivil(absl::CivilSecond(2026, 3, 5, 6, 7, 8), absl::UTCTimeZone());
  const TemplateValue variables = FromJson(nlohmann::ordered_json::parse(line)["variables"].dump());
  for (const auto& [key, value] : variables.dict().entries()) {
    input.extra.emplace_back(key.string(), value);
  }
  int checked = 0;
  for (; std::getline(file, line); ++checked) {
    const auto golden = nlohmann::json::parse(line);
    const std::string source = golden["source"];
    const std::string rendered = RenderedWith(source, input);
    if (golden.contains("output")) {
      EXPECT_EQ(rendered, golden["output"].get<std::string>()) << source;
      continue;
    }
    // The place comes first, the reason is in our words.
    EXPECT_EQ(rendered.rfind("error: ", 0), 0u) << source << " gave " << rendered;
    const bool own = source.find("raise_exception") != std::string::npos;
    EXPECT_THAT(rendered, own ? testing::HasSubstr("error: own words: 7")
                              : testing::HasSubstr("line 1, column "))
        << source;
  }
  EXPECT_GT(checked, 90);
}

TEST(Constructs, ErrorsNameLineAndColumn) {
  EXPECT_EQ(Rendered("a\nbc {{ missing.x }}"),
            "error: chat template, line 2, column 7: 'missing' is undefined");
  EXPECT_EQ(Rendered("ü\n\n é {{ 1 + }}"),
            "error: chat template, line 3, column 11: expected an expression, not the end of the "
            "tag");
  EXPECT_EQ(Rendered("{% for x in [1] %}\n{{ x }}"),
            "error: chat template, line 2, column 8: expected {% endfor %}, not the end of the "
            "template");
}

TEST(Constructs, WhatReachesOutsideTheTemplateIsRefused) {
  for (const char* source : {"{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}",
                             "{% block b %}{% endblock %}", "{% from 'x' import y %}"}) {
    EXPECT_THAT(Rendered(source), testing::HasSubstr("error: chat template, line 1")) << source;
  }
  EXPECT_EQ(Rendered("{{ ''.__class__ is defined }}{{ [].__len__ is defined }}"), "FalseFalse");
}

TEST(Constructs, LineEndsAreNormalised) {
  EXPECT_EQ(Rendered("a\r\nb\rc\n"), "a\nb\nc");
  EXPECT_EQ(Rendered("{% if true %}\r\nx\r\n{% endif %}\r\ny\r\n"), "x\ny");
}

TEST(Constructs, ExtraVariablesWinOverTheStandardOnes) {
  EXPECT_EQ(Rendered("{{ add_generation_prompt }} {{ bos_token }}",
                     {{"add_generation_prompt", false}, {"bos_token", "B"}}),
            "False B");
}

TEST(Constructs, IntegersStayIn64Bits) {
  EXPECT_EQ(Rendered("{{ 9223372036854775807 }}"), "9223372036854775807");
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ 9223372036854775808 }}", "{{ 2 ** 64 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ (-9223372036854775807 - 1) | abs }}",
        "{{ -(-9223372036854775807 - 1) }}", "{{ 4611686018427387904 * 2 }}"}) {
    EXPECT_THAT(Rendered(source), testing::HasSubstr("64 bits")) << source;
  }
  EXPECT_EQ(Rendered("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(Rendered("{{ 'abc'[9223372036854775807] }}{{ 'abc'[-9223372036854775807:1] }}"), "a");
  EXPECT_EQ(Rendered("{{ [1,2,3][::9223372036854775807] }}{{ [1,2][::-9223372036854775807] }}"),
            "[1][2]");
}

}  // namespace
}  // namespace hexad
