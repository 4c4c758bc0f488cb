#include "server/client/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace hexad {
namespace {

TEST(JsonText, ReadsBackAsWritten) {
  for (const std::string& text : {std::string(), std::string("a\"b\\c/\n\t\r\x01\x7f"),
                                  std::string("\0x", 2), std::string("é€😀\xF4\x8F\xBF\xBF")}) {
    EXPECT_EQ(nlohmann::json::parse(JsonString(text)).get<std::string>(), text);
  }
}

TEST(JsonText, AnyBytesGiveValidJson) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i)
      text += static_cast<char>(random() % 4 == 0 ? random() % 128 : 128 + random() % 128);
    EXPECT_NO_THROW(nlohmann::json::parse(JsonString(text))) << round;
  }
  EXPECT_EQ(JsonString("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(JsonString("\xC0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonText, PrintableDropsWhatMovesATerminal) {
  EXPECT_EQ(Printable("a\033[2Jb\ac\r\n\td\x7f"), "a[2Jbc\n\td");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m é\xFF"),
            "31m é");
}

}  // namespace
}  // namespace hexad
