#include "server/bench/engine_test_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexad {
namespace {

using ::testing::HasSubstr;

TEST(EngineTestSpec, Defaults) {
  const auto decode = ParseEngineTest("decode");
  ASSERT_TRUE(decode.ok());
  EXPECT_EQ(*decode, EngineTestSpec{});
  const auto prefill = ParseEngineTest("prefill");
  ASSERT_TRUE(prefill.ok());
  EXPECT_EQ(prefill->kind, EngineTestSpec::Kind::kPrefill);
  EXPECT_EQ(prefill->tokens, 512);
}

TEST(EngineTestSpec, NamesParseBack) {
  for (const char* text : {"decode:tokens=3", "prefill:tokens=70:depth=32",
                           "decode:batch=8:prompt=own:depth=256", "decode:depth=4096:batch=2"}) {
    const auto spec = ParseEngineTest(text);
    ASSERT_TRUE(spec.ok()) << text << ": " << spec.status();
    const auto again = ParseEngineTest(EngineTestName(*spec));
    ASSERT_TRUE(again.ok()) << EngineTestName(*spec);
    EXPECT_EQ(*again, *spec);
  }
}

TEST(EngineTestSpec, SaysWhatIsWrong) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "decode or prefill"},
           {"decod", "decode or prefill"},
           {"decode:", "a field is"},
           {"decode:batch", "batch is 1 to"},
           {"decode:batch=0", "batch is 1 to"},
           {"decode:batch=1025", "batch is 1 to"},
           {"decode:tokens=99999999999999999999", "tokens is"},
           {"decode:tokens=4x", "tokens is"},
           {"decode:depth=-16", "multiple of 16"},
           {"decode:depth=17", "multiple of 16"},
           {"decode:prompt=mine", "a field is"},
           {"prefill:batch=2", "one sequence"}}) {
    const auto spec = ParseEngineTest(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(spec.status()));
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(says)) << text;
  }
}

}  // namespace
}  // namespace hexad
