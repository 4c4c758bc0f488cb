// Templates and requests that try to hang, crash or fill memory: a clean error each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/chat_template/render_helper.h"

namespace hexad {
namespace {

using testing::HasSubstr;

// Small limits keep the test quick; what matters is that each is reached.
std::string Limited(const std::string& source) {
  TemplateInput input;
  input.limits.max_steps = 200'000;
  input.limits.max_output_bytes = size_t{1} << 20;
  input.limits.max_created_bytes = size_t{16} << 20;
  return RenderedWith(source, input);
}

std::string Repeated(const std::string& unit, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += unit;
  return text;
}

TEST(Limits, EndlessLoops) {
  EXPECT_THAT(Limited("{% for i in range(10**9) %}{% endfor %}"), HasSubstr("Range too big"));
  EXPECT_THAT(
      Limited("{% for i in range(-9223372036854775807, 9223372036854775807) %}{% endfor %}"),
      HasSubstr("Range too big"));
  EXPECT_THAT(
      Limited("{% for i in range(9999) %}{% for j in range(999) %}{% endfor %}{% endfor %}"),
      HasSubstr("error: chat template, line 1"));
  EXPECT_THAT(Limited("{% for i in range(99999) %}{{ i + 1 }}{% endfor %}"), HasSubstr("steps"));
}

TEST(Limits, GrowingTexts) {
  EXPECT_THAT(Limited("{% set ns = namespace(s='x') %}{% for i in range(64) %}"
                      "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
              HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ 'x' * 10**15 }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ [1] * 10**15 }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ ('x' * 1000000).replace('x', 'y' * 100000) }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ ('x' * 1000000).replace('', 'y' * 100000) }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ ('\\n' * 100000) | indent('y' * 100000, true, true) }}"),
              HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ range(9999) | join('y' * 100000) }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ 'x' | center(10**12) }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ 'x'.rjust(10**12) }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ [1] | batch(10**12, 0) | list }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited("{{ [[1]] | tojson(indent=10**9) }}"), HasSubstr("indent"));
  EXPECT_THAT(Limited("{% for i in range(2000) %}{{ 'x' * 1000 }}{% endfor %}"),
              HasSubstr("writes more than"));
}

TEST(Limits, SharedListsThatAreExponentialAsText) {
  const std::string grow =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  EXPECT_THAT(Limited(grow + "{{ ns.a }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited(grow + "{{ ns.a | tojson }}"), HasSubstr("bytes"));
  EXPECT_THAT(Limited(grow + "{{ ns.a == ns.b }}"), HasSubstr("steps"));
  EXPECT_THAT(Limited(grow + "{{ ns.a in [ns.b] }}"), HasSubstr("steps"));
  EXPECT_THAT(Limited(grow + "{{ ns.a < ns.b }}"), HasSubstr("error"));
  EXPECT_THAT(Limited("{% set ns = namespace(d={}) %}{% for i in range(60) %}"
                      "{% set ns.d = {'a': ns.d, 'b': ns.d} %}{% endfor %}{{ ns.d }}"),
              HasSubstr("bytes"));
}

TEST(Limits, Recursion) {
  EXPECT_THAT(Limited("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("nested"));
  EXPECT_THAT(Limited("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}"
                      "{{ a() }}"),
              HasSubstr("nested"));
  EXPECT_THAT(Limited("{% macro m(x=m()) %}{% endmacro %}{{ m() }}"), HasSubstr("error"));
  EXPECT_THAT(Limited("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("nested"));
  EXPECT_THAT(Limited("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}"
                      "{{ m() }}"),
              HasSubstr("nested"));
  EXPECT_THAT(Limited("{{ [[1]] | map('map', 'map', 'map', 'list') | list }}"), HasSubstr("error"));
}

TEST(Limits, NestedSource) {
  for (const char* open : {"(", "[", "{1:", "not ", "-", "a[", "a(", "1 if ", "1 + ", "a.b + ",
                           "x|f(", "x ~ (", "a is ", "{'a': [("}) {
    EXPECT_THAT(Limited("{{ " + Repeated(open, 20000) + " }}"), HasSubstr("error")) << open;
  }
  EXPECT_THAT(Limited("{{ x" + Repeated("|string", 20000) + " }}"), HasSubstr("deeper"));
  EXPECT_THAT(Limited("{{ x" + Repeated(".a", 20000) + " }}"), HasSubstr("deeper"));
  EXPECT_THAT(Limited("{{ x" + Repeated("[0]", 20000) + " }}"), HasSubstr("deeper"));
  EXPECT_THAT(Limited("{{ 1" + Repeated(" + 1", 20000) + " }}"), HasSubstr("deeper"));
  EXPECT_THAT(Limited("{{ 1" + Repeated(" if 1 else 1", 20000) + " }}"), HasSubstr("error"));
  EXPECT_THAT(Limited(Repeated("{% if 1 %}", 20000)), HasSubstr("deeper"));
  EXPECT_THAT(Limited(Repeated("{% for x in y %}", 20000)), HasSubstr("deeper"));
  EXPECT_THAT(Limited("{% set " + Repeated("(", 20000) + Repeated(")", 20000) + "%}"),
              HasSubstr("deeper"));
  EXPECT_EQ(Limited("{{ 1" + Repeated(" and 1", 20000) + " }}"), "1");  // wide, not deep
}

TEST(Limits, NestedValues) {
  EXPECT_THAT(Limited("{% set ns = namespace(l=[]) %}{% for i in range(5000) %}"
                      "{% set ns.l = [ns.l] %}{% endfor %}"),
              HasSubstr("nested"));
  TemplateValue deep = TemplateValue(TemplateValue::List{});
  for (int i = 0; i < 150; ++i) deep = TemplateValue(TemplateValue::List{deep});
  TemplateInput input;
  input.messages = deep;
  EXPECT_THAT(RenderedWith("", input), HasSubstr("nest too deeply"));
}

TEST(Limits, ObjectsThatHoldThemselves) {
  EXPECT_EQ(Limited("{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.list = [ns] %}"
                    "{{ ns.me.me.list }}"),
            "[<Namespace>]");
  EXPECT_THAT(Limited("{% set ns = namespace() %}{% for i in [1] %}{% macro m() %}{{ i }}"
                      "{% endmacro %}{% set ns.m = m %}{% endfor %}{{ ns.m() }}"),
              HasSubstr("outlived"));
}

TEST(Limits, SlowSearches) {
  // Quadratic for a naive search of "aaa...b" in "aaa...".
  EXPECT_EQ(Limited("{{ ('a' * 500000).find('a' * 250000 ~ 'b') }}"), "-1");
  EXPECT_EQ(Limited("{{ ('a' * 250000 ~ 'b') in ('a' * 500000) }}"), "False");
  EXPECT_THAT(Limited("{{ ('a' * 500000).rfind('a' * 250000) }}"), HasSubstr("error"));
  EXPECT_THAT(Limited("{{ ('ab' * 250000).strip('cdefgh' * 1000 ~ 'ab') }}"), HasSubstr("error"));
}

TEST(Limits, ManyNames) {
  std::string source;
  for (int i = 0; i < 3000; ++i) source += "{% set v" + std::to_string(i) + " = 1 %}";
  EXPECT_THAT(Limited(source), HasSubstr("names in one scope"));
}

TEST(Limits, ALongChatIsWellWithinTheDefaults) {
  TemplateValue::List messages;
  for (int i = 0; i < 2000; ++i) {
    messages.emplace_back(TemplateDict{{"role", i % 2 == 0 ? "user" : "assistant"},
                                       {"content", std::string(500, 'x')}});
  }
  TemplateInput input;
  input.messages = TemplateValue(std::move(messages));
  const std::string text = RenderedWith(
      "{% for m in messages %}{% if m.role == 'user' %}U{% else %}A{% endif %}"
      "{{ m['content'] | trim }}{% endfor %}",
      input);
  EXPECT_EQ(text.size(), 2000u * 501u);
}

}  // namespace
}  // namespace hexad
