#include "server/models/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ChildProcess, ArgumentsAreNoShellAndOutputIsCaptured) {
  std::vector<std::string> lines;
  ChildOptions options;
  options.on_line = [&](const std::string& line) { lines.push_back(line); };
  const auto result = RunChild({"printf", "%s\\n", "a b", "$(id)", ";"}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_THAT(lines, ElementsAre("a b", "$(id)", ";"));
}

TEST(ChildProcess, ExitCodesSignalsBothStreamsAndEnvironment) {
  ChildOptions options;
  options.environment = {{"HEXAD_TEST_VALUE", "from us"}};
  auto result = RunChild({"sh", "-c", "echo $HEXAD_TEST_VALUE; echo bad >&2; exit 3"}, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->output, "from us\nbad\n");
  result = RunChild({"sh", "-c", "kill -9 $$"}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 137);
}

TEST(ChildProcess, StandardInputIsEmpty) {
  const auto result = RunChild({"cat"}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->output, "");
}

TEST(ChildProcess, AnAbsentProgramIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(RunChild({"hexad-no-such-program"}, {}).status()));
}

TEST(ChildProcess, MuchOutputKeepsItsTail) {
  const auto result = RunChild({"sh", "-c", "yes | head -c 300000; echo end"}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_LE(result->output.size(), 16u << 10);
  EXPECT_THAT(result->output, HasSubstr("\nend\n"));
}

TEST(ChildProcess, ATimeoutKillsEvenWhenAGrandchildHoldsTheOutput) {
  ChildOptions options;
  options.timeout = std::chrono::milliseconds(50);
  const auto result = RunChild({"sh", "-c", "echo begun; tail -f /dev/null & wait"}, options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
}

TEST(ChildProcess, AnEndedChildIsBelievedThoughAGrandchildHoldsTheOutput) {
  const auto result = RunChild({"sh", "-c", "echo done; (exec sleep 5) & exit 0"}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(result->output, "done\n");
}

}  // namespace
}  // namespace hexad
