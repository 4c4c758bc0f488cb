#include "engine/tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace hexad {
namespace {

TEST(Utf8, EveryScalarValueRoundTrips) {
  std::string text;
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 61) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    text.clear();
    AppendUtf8(c, text);
    const Utf8Char decoded = DecodeUtf8(text, 0);
    ASSERT_EQ(decoded.kind, Utf8Kind::kValid) << static_cast<uint32_t>(c);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(DecodeUtf8(std::string_view(text).substr(0, cut), 0).kind, Utf8Kind::kIncomplete);
    }
  }
}

TEST(Utf8, RefusesWhatRfc3629Forbids) {
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x98("}) {
    EXPECT_EQ(DecodeUtf8(bad, 0).kind, Utf8Kind::kInvalid) << bad;
    EXPECT_EQ(FindInvalidUtf8(std::string("ok") + bad), 2u);
  }
  EXPECT_EQ(FindInvalidUtf8("ok\xF0\x9F\x98"), 2u);
  EXPECT_EQ(FindInvalidUtf8("ok"), 2u);
}

TEST(Utf8, SurrogatesAndBeyondAreReplaced) {
  std::string text;
  AppendUtf8(0xD800, text);
  AppendUtf8(0x110000, text);
  EXPECT_EQ(text, std::string(kReplacementCharacter) + std::string(kReplacementCharacter));
}

}  // namespace
}  // namespace hexad
