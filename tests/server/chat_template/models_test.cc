// Templates in the manner of the models that hexad serves first, written for these tests.

#include <gtest/gtest.h>

#include "tests/server/chat_template/render_helper.h"

namespace hexad {
namespace {

constexpr const char* kChatMl =
    "{% for turn in messages %}"
    "{% if loop.first and turn['role'] != 'system' %}"
    "{{ '<|im_start|>system\nBe helpful.<|im_end|>\n' }}"
    "{% endif %}"
    "{{ '<|im_start|>' + turn['role'] + '\n' + turn['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

constexpr const char* kGemma = R"({{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for turn in turns -%}
    {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Roles must alternate") }}
    {%- endif -%}
    {%- set role = "model" if turn['role'] == 'assistant' else turn['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (prefix if loop.first else "") }}
    {%- if turn['content'] is string -%}
        {{ turn['content'] | trim }}
    {%- elif turn['content'] is iterable -%}
        {%- for part in turn['content'] -%}
            {%- if part['type'] == 'image' -%}{{ '<image>' }}
            {%- elif part['type'] == 'text' -%}{{ part['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
)";

TemplateInput InputWith(TemplateValue messages) {
  TemplateInput input;
  input.messages = std::move(messages);
  input.bos_token = "<bos>";
  return input;
}

TEST(ModelTemplates, ChatMl) {
  EXPECT_EQ(RenderedWith(kChatMl, InputWith(Messages({{"user", "Hi"}}))),
            "<|im_start|>system\nBe helpful.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  TemplateInput input = InputWith(Messages({{"system", "S"}, {"user", "U"}, {"assistant", "A"}}));
  input.add_generation_prompt = false;
  EXPECT_EQ(RenderedWith(kChatMl, input),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
            "<|im_start|>assistant\nA<|im_end|>\n");
}

TEST(ModelTemplates, Gemma) {
  EXPECT_EQ(
      RenderedWith(kGemma,
                   InputWith(Messages(
                       {{"system", "S"}, {"user", " U "}, {"assistant", "A"}, {"user", "V"}}))),
      "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
      "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(RenderedWith(kGemma, InputWith(FromJson(
                                     R"([{"role":"user","content":[{"type":"image"},
                                     {"type":"text","text":"what?"}]}])"))),
            "<bos><start_of_turn>user\n<image>what?<end_of_turn>\n<start_of_turn>model\n");
}

TEST(ModelTemplates, RaiseExceptionIsTheTemplatesOwnMessage) {
  EXPECT_EQ(RenderedWith(kGemma, InputWith(Messages({{"assistant", "A"}}))),
            "error: Roles must alternate");
  const auto parsed = ChatTemplate::Parse(kGemma);
  const auto refused = (*parsed)->Render(InputWith(Messages({{"assistant", "A"}})));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ModelTemplates, ToolsAndTime) {
  TemplateInput input = InputWith(Messages({{"user", "x"}}));
  input.tools = FromJson(R"([{"type":"function","function":{"name":"f"}}])");
  input.now = absl::FromCivil(absl::CivilSecond(2026, 3, 5, 6, 7, 8), absl::UTCTimeZone());
  EXPECT_EQ(RenderedWith("{{ strftime_now('%d %b %Y') }} {{ tools | tojson }}", input),
            R"(05 Mar 2026 [{"type": "function", "function": {"name": "f"}}])");
}

}  // namespace
}  // namespace hexad
