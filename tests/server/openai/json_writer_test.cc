#include "server/openai/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace hexad {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  JsonWriter(&out).String(text);
  return out;
}

std::string Number(float value) {
  std::string out;
  JsonWriter(&out).Float(value);
  return out;
}

TEST(JsonWriterTest, NestingAndCommas) {
  std::string out;
  JsonWriter json(&out);
  json.BeginObject();
  json.Key("a").Int(-1).Key("b").BeginArray().Int(1).BeginObject().EndObject().Null().EndArray();
  json.Key("c").BeginObject().Key("d").Bool(true).EndObject().Key("e").Bytes("\xff\n");
  json.Key("f").BeginArray().EndArray().Key("g").Raw("[0]").EndObject();
  EXPECT_EQ(out, R"({"a":-1,"b":[1,{},null],"c":{"d":true},"e":[255,10],"f":[],"g":[0]})");
}

TEST(JsonWriterTest, EveryCharacterReadsBack) {
  for (uint32_t c = 1; c < 0x800; ++c) {
    std::string text;
    if (c < 0x80) {
      text.push_back(static_cast<char>(c));
    } else {
      text.push_back(static_cast<char>(0xC0 | (c >> 6)));
      text.push_back(static_cast<char>(0x80 | (c & 63)));
    }
    EXPECT_EQ(nlohmann::json::parse(Quoted(text)).get<std::string>(), text);
  }
  EXPECT_EQ(Quoted("\"\\/\n\r\t\x01\x7f"), R"("\"\\/\n\r\t\u0001\u007f")");
  EXPECT_EQ(Quoted(std::string_view("a\0b", 3)), R"("a\u0000b")");
  EXPECT_EQ(Quoted("🎉é"), "\"🎉é\"");
}

TEST(JsonWriterTest, MalformedUtf8BecomesReplacementCharacters) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(Quoted("a\xff"
                   "b"),
            "\"a" + r + "b\"");
  EXPECT_EQ(Quoted("\xe2\x82"), "\"" + r + r + "\"");          // cut
  EXPECT_EQ(Quoted("\xc0\xaf"), "\"" + r + r + "\"");          // overlong
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"" + r + r + r + "\"");  // surrogate
  EXPECT_EQ(Quoted("\xf4\x90\x80\x80"), "\"" + r + r + r + r + "\"");
  EXPECT_EQ(Quoted("\xf0\x9f\x8e"), "\"" + r + r + r + "\"");
}

TEST(JsonWriterTest, FloatsAreShortExactAndFinite) {
  EXPECT_EQ(Number(0), "0");
  EXPECT_EQ(Number(-0.0012038043f), "-0.0012038043");
  EXPECT_EQ(Number(-1e-20f), "-1e-20");
  EXPECT_EQ(Number(-std::numeric_limits<float>::infinity()), "-9999");
  EXPECT_EQ(Number(std::numeric_limits<float>::infinity()), "9999");
  EXPECT_EQ(Number(std::nanf("")), "0");
  for (const float value : {-0.1f, -3.4e-7f, -17.25f, 1.0f / 3}) {
    EXPECT_EQ(static_cast<float>(nlohmann::json::parse(Number(value)).get<double>()), value);
  }
}

}  // namespace
}  // namespace hexad
