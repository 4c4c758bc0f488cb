#!/usr/bin/env python3
"""Writes what Python's Jinja2 makes of small templates, one a construct or a corner of Python.

    make_template_goldens.py > tests/golden/chat_template/constructs.jsonl

The environment is that of transformers' apply_chat_template. One line a template: {"source",
"output"} or {"source", "error"}; every template sees the variables of VARIABLES. Needs jinja2.
"""

import json

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARIABLES = {
    "s": "Hello, World", "empty": "", "u": "Grüße, мир 🙂", "n": 7, "neg": -3, "f": 2.5,
    "yes": True, "no": False, "nothing": None, "l": [3, 1, 2], "words": ["b", "A", "c"],
    "d": {"b": 1, "a": [1, 2.0, None, True], "c": {"x": "y"}},
    "people": [{"name": "Ann", "age": 30, "ok": True}, {"name": "bob", "age": 25},
               {"name": "Cy", "age": 30, "ok": False}],
    "text": "  one two\n\n three \t", "html": "<a href=\"x\">&'</a>", "el": [],
}

SOURCES = r"""
{{ s }} {{ n }} {{ f }} {{ yes }} {{ nothing }} {{ l }} {{ d }} {{ missing }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 3 }} {{ 1e20 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 123456789012345.0 }} {{ 100.0 }}
{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5e3 }}
{{ true + 1 }} {{ yes == 1 }} {{ 1 == 1.0 }} {{ "a" == 1 }} {{ [1, 2] == [1, 2.0] }} {{ {"a": 1} == {"a": 1} }}
{{ "a" + "b" ~ 1 ~ none ~ missing }} {{ "ab" * 3 }} {{ [1] * 2 + [2] }} {{ (1, 2) + (3,) }} {{ (1,) }} {{ () }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ "a" < "b" }} {{ [1, 2] < [1, 3] }} {{ 2 >= 2.0 }} {{ "Z" > "a" }}
{{ "b" in d }} {{ "zz" not in d }} {{ 3 in l }} {{ "World" in s }} {{ "" in s }} {{ 1 in missing }}
{{ not yes or no }} {{ yes and "x" }} {{ no or "" or "y" }} {{ not missing }} {{ not el }} {{ nothing or 5 }}
{{ "a" if yes else "b" }} {{ "a" if no }} {{ "a" if no else "b" if no else "c" }}
{{ s[0] }} {{ s[-1] }} {{ s[0:5] }} {{ s[::-1] }} {{ s[-5:] }} {{ s[7:100] }} {{ u[7:10] }} {{ u[-1] }} {{ s[100:] }}
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5:] }} {{ l[9] }} {{ l[2:0:-1] }} {{ l[:] }}
{{ d.b }} {{ d["a"] }} {{ d.c.x }} {{ d.zz }} {{ d["a"][1] }} {{ d.a.0 }} {{ people.0.name }} {{ d.get("q") }} {{ d.get("q", 5) }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {{ d | length }} {{ d | list }}
{{ missing.x }}
{{ missing + "x" }}
{{ "x" + missing }}
{{ "x" + 1 }}
{{ 1 + nothing }}
{{ missing() }}
{{ s() }}
{{ 1 / 0 }}
{{ 1 < "a" }}
{{ nothing | length }}
{{ l.append(4) }}
{{ d.update({"x": 1}) }}
{{ nothing.x }}|{{ nothing.x is defined }}
{{ {1: "a", "b": [1, (2, 3)], none: true} }} {{ {} }} {{ [] }} {{ ["it's", 'say "x"', "both ' and \"", "new\nline\ttab\\"] }}
{{ "esc \n \t \\ \" \' \x41 \u00e9 \U0001F642 \q \101" }}
{{ 'one' 'two' }} {{ "multi
line" }}
{{ s | upper }} {{ s | lower }} {{ "hello wORLD" | title }} {{ "hELLO" | capitalize }} {{ u | upper }} {{ "ÀÉ Ж Ω" | lower }} {{ "straße" | upper }}
[{{ text | trim }}] [{{ "xxaxx" | trim("x") }}] [{{ text.strip() }}] [{{ text.lstrip() }}] [{{ text.rstrip() }}] [{{ "--a-".strip("-") }}] [{{ "abcba".lstrip("ab") }}]
{{ text.split() }} {{ "a,b,,c".split(",") }} {{ "a,b,c".split(",", 1) }} {{ "a b  c".split(" ") }} {{ "a,b,c".rsplit(",", 1) }} {{ "a b c d".split(maxsplit=2) }} {{ "".split() }} {{ "".split(",") }} {{ "x".split("xx") }}
{{ "a-b-c".split("-")[-1] }} {{ "<t>x</t>".split("</t>")[0].split("<t>")[-1].lstrip("\n") }}
{{ s.startswith("Hello") }} {{ s.endswith(("x", "ld")) }} {{ s.replace("l", "L") }} {{ s.replace("l", "L", 1) }} {{ "aaa".replace("", "-") }} {{ s.find("o") }} {{ s.rfind("o") }} {{ s.find("zz") }} {{ s.count("l") }} {{ "éaé".find("a") }}
{{ s | replace("World", "X") }} {{ "aXbX" | replace("X", "", 1) }}
{{ "a.b".partition(".") }} {{ "a.b.c".rpartition(".") }} {{ "ab".partition(".") }} {{ "ab\ncd\r\ne".splitlines() }} {{ "abc".removeprefix("a") }} {{ "abc".removesuffix("bc") }}
{{ "12".isdigit() }} {{ "1a".isdigit() }} {{ "ab".isalpha() }} {{ " ".isspace() }} {{ "AB".isupper() }} {{ "ab".islower() }} {{ "a1".isalnum() }} {{ "7".rjust(3, "0") }} {{ "7".ljust(3) }}|
{{ l | join(", ") }} {{ l | join }} {{ people | join("-", attribute="name") }} {{ ",".join(words) }} {{ d | join("+") }} {{ "abc" | join(".") }} {{ missing | join(",") }}
{{ l | first }} {{ l | last }} {{ el | first }} {{ s | first }} {{ l | length }} {{ s | length }} {{ u | length }} {{ l | sum }} {{ people | sum(attribute="age") }} {{ l | max }} {{ l | min }} {{ words | max }}
{{ l | sort }} {{ l | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ people | sort(attribute="name") | map(attribute="name") | list }} {{ l | reverse | list }} {{ "abc" | reverse }} {{ [1, 2, 1, "a", "A"] | unique | list }}
{{ d | dictsort }} {{ {"B": 2, "a": 3, "C": 1} | dictsort }} {{ {"B": 2, "a": 3} | dictsort(by="value") }} {{ d | items | list }}
{{ people | selectattr("ok") | map(attribute="name") | list }} {{ people | rejectattr("ok") | map(attribute="name") | list }} {{ people | selectattr("age", "equalto", 30) | map(attribute="name") | join(",") }} {{ people | selectattr("ok", "defined") | list | length }} {{ people | map(attribute="ok", default="?") | list }}
{{ l | select("odd") | list }} {{ l | reject("gt", 1) | list }} {{ words | map("upper") | list }} {{ [0, 1, "", "x"] | select | list }} {{ words | map("replace", "b", "Z") | join }} {{ ["a", "b"] | map("length") | sum }}
{{ l | batch(2) | list }} {{ l | batch(2, "x") | list }} {% for age, group in people | groupby("age") %}{{ age }}:{{ group | map(attribute="name") | join("/") }};{% endfor %}
{{ missing | default("x") }} {{ empty | default("x") }}| {{ empty | default("x", true) }} {{ nothing | default("x") }} {{ nothing | d("x", boolean=true) }} {{ missing | default }}|
{{ "12" | int }} {{ "x" | int }} {{ "x" | int(5) }} {{ 3.9 | int }} {{ "3.7" | int }} {{ "1.5" | float }} {{ "x" | float }} {{ 2 | float }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(method="ceil") }} {{ 42 | round }} {{ -3 | abs }} {{ neg | abs }} {{ 2.675 | round(2) }}
{{ n | string + "x" }} {{ l | string }} {{ html | e }} {{ html | escape }} {{ html | safe }} {{ s | list }} {{ "a b c" | wordcount }} {{ "a b&c" | urlencode }}
{{ "a\nb\n\nc" | indent }} {{ "a\nb" | indent(2, true) }} {{ "a\nb" | indent(width="> ") }}
{{ "ab" | center(6) }}| {{ "hello there world" | truncate(10) }} {{ "hello there world" | truncate(8, true, "..", 0) }}
{{ d | tojson }} {{ l | tojson }} {{ u | tojson }} {{ html | tojson }} {{ "q\"\\\n\t\u0001/" | tojson }} {{ nothing | tojson }} {{ f | tojson }} {{ 1.0 | tojson }} {{ (1, 2) | tojson }} {{ u | tojson(ensure_ascii=true) }}
{{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {"a": {}} | tojson(indent=4) }} {{ d | tojson(sort_keys=true) }} {{ d | tojson(separators=(",", ":")) }} {{ {1: 2, none: 3, true: 4} | tojson }}
{{ missing | tojson }}
{{ s | nosuchfilter }}
{{ s is nosuchtest }}
{{ s is string }} {{ n is number }} {{ n is integer }} {{ yes is integer }} {{ yes is number }} {{ f is float }} {{ l is sequence }} {{ l is iterable }} {{ d is mapping }} {{ s is iterable }} {{ n is iterable }} {{ nothing is none }} {{ missing is defined }} {{ missing is undefined }} {{ d.b is defined }} {{ d.zz is not defined }} {{ yes is boolean }} {{ yes is true }} {{ 1 is true }} {{ no is false }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ n is eq 7 }} {{ n is ne(7) }} {{ n is gt 3 }} {{ n is in [7] }} {{ "a" is lower }} {{ "A" is upper }} {{ s is sameas s }} {{ "upper" is filter }} {{ "odd" is test }} {{ range is callable }} {{ missing is iterable }} {{ missing is sequence }} {{ d is sequence }} {{ n == 7 is true }}
{% for i in l %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ "," if not loop.last }}{% endfor %} {% for i in l %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle("x", "y") }};{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for k in d %}{{ k }}{% endfor %} {% for c in "abc" %}{{ c }}.{% endfor %} {% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}
{% for i in el %}x{% else %}none{% endfor %} {% for i in missing %}x{% else %}undef{% endfor %} {% for i in l if i > 1 %}{{ i }}{{ loop.length }}{% else %}no{% endfor %} {% for i in l if i > 9 %}{{ i }}{% else %}no{% endfor %}
{% for i in nothing %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %} {{ range(3) | list }} {{ range(1, 10, 3) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }}
{{ range(1000000) | length }}
{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{% endfor %}{{ x }} {% set ns = namespace(x=1, y="a") %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z is defined }}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set t = 1, 2 %}{{ t }} {% if yes %}{% set q = 3 %}{% endif %}{{ q }} {% set blk %}a{{ n }}b{% endset %}[{{ blk }}] {% set blk | upper | trim %} abc {% endset %}[{{ blk }}]
{% set d.x = 1 %}
{% macro m(a, b=2, c="x") %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c="z") }} {{ m() }} {{ m(b=1, a=0) }} {{ m | string | length > 0 }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k * (fact(k - 1) | int) }}{% endif %}{% endmacro %}{{ fact(5) }} {% macro late() %}{{ z }}{% endmacro %}{% set z = 9 %}{{ late() }}
{% macro wrap(t) %}<{{ t }}>{{ caller("arg") }}</{{ t }}>{% endmacro %}{% call(x) wrap("b") %}body {{ x }} {{ n }}{% endcall %} {% macro w2() %}[{{ caller() }}]{% endmacro %}{% call w2() %}plain{% endcall %}
{% filter upper | replace("A", "_") %}abc {{ s }}{% endfilter %} {% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }} {% generation %}gen{{ n }}{% endgeneration %}
{% for i in [[1, [2]], [3]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}@{{ loop.depth }}{% endif %}{% endfor %}
{% if no %}a{% elif n == 7 %}b{% else %}c{% endif %} {% if el %}x{% elif nothing %}y{% else %}z{% endif %}
a {# comment #} b {#- trimmed -#} c {% raw %}{{ not }} {% evaluated %}{% endraw %} d{{- n -}} e {{ "}}" }} {{ {"a": {"b": 1}}["a"]["b"] }} {{ '{%' }}
line1\N  {% if yes %}\N  body\N  {% endif %}\Nline2\N  {{ n }}\N  {# c #}\Nend\N
x\N{%- if yes -%}\N  y  \N{%- endif %}\Nz\N  {%+ if yes %}w{% endif +%}\Nv {% if yes %}q{% endif %}  \N r
\N{% for i in l %}\N    {%- if i > 1 %}\N{{ i }}\N    {%- endif %}\N{% endfor %}\Ntail\N\N
{{ ("a", "b")[1] }} {{ [1, 2, 3][1:] | first }} {{ -n }} {{ - n + 1 }} {{ +n }} {{ (1 + 2) * 3 }} {{ -3 | abs }} {{ "a" ~ 1 + 2 }} {{ 10 - 2 - 3 }} {{ 2 * 3 ** 2 }} {{ 8 / 2 / 2 }} {{ not 1 == 2 }}
{{ raise_exception("own words: " ~ n) }}
{{ strftime_now("%Y-%m-%d %B") }}
{{ dict(a=1, b=2) }} {{ dict({"x": 1}, y=2) }} {{ namespace().x is defined }} {{ [{"a": 1}.a, {"items": 5}["items"], d.items is defined] }}
{{ "%s" }} {{ "%" ~ n }} {{ "100%" }} {% set a = "x" %}{% set a = a ~ "y" %}{{ a }} {{ "x" is string and n is number }} {{ (n if n is defined else 0) + 1 }}
{{ "a" in "abc" and "d" not in "abc" }} {{ l | length > 2 and l[0] == 3 }} {{ s | length == 12 }} {{ messages is defined }} {{ "x" if messages is not defined else "y" }}
{{ [1, 2, 3, 4][1:-1] }} {{ people[-1].name }} {{ people[0]["name"][0] }} {{ (people | first).name }} {{ people | map(attribute="name") | first }} {{ loop is defined }}
{{ 1 if }}
{{ [1, 2 }}
{{ 1 + }}
{% if %}x{% endif %}
{% endif %}
{% for x %}{% endfor %}
{% for x in l %}
{{ "unterminated }}
{# no end
{% unknown %}
{{ n
{{ n }
{{ a b }}
{% set %}
{% break %}
{{ s | }}
{{ s is }}
{{ ) }}
{{ "%s-%d%% %r" | format(s, n, s) }} {{ nothing | selectattr("x") | list }} {{ nothing | map("upper") | list }}
{{ "%d" | format("x") }}
{{ [[1, 2], [3]] | map("sum") | list }} {{ [d.c] | map(attribute="x") | list }} {{ {"a b": 1}["a b"] }} {{ [none, true] | tojson }} {{ 3 | tojson }} {{ -0.0 }} {{ 1e400 }}
{{ text | trim | replace("\n", " ") | upper }} {{ (s ~ "!") | lower }} {{ s.upper().lower().title() }} {{ s.split(", ")[1].upper() }} {{ "a" "b" | upper }}
"""


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(lineno)

    def _run(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    from datetime import datetime
    env.globals["strftime_now"] = lambda form: datetime(2026, 3, 5, 6, 7, 8).strftime(form)
    return env


def main():
    env = environment()
    print(json.dumps({"variables": VARIABLES}))
    sources = SOURCES.strip("\n").replace('"multi\nline"', '"multi\\Nline"').split("\n")
    for source in sources:
        source = source.replace("\\N", "\n")
        try:
            line = {"source": source, "output": env.from_string(source).render(**VARIABLES)}
        except Exception as error:  # whatever Python raises is this template's result
            line = {"source": source, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
