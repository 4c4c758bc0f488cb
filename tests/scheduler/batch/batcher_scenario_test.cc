// Plays every script of tests/scheduler/batch/scenarios.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scheduler/batch/script_runner.h"

namespace hexad::testing {
namespace {

TEST(BatcherScenario, AllHold) {
  int played = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::string(HEXAD_SOURCE_DIR) + "/tests/scheduler/batch/scenarios")) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    std::stringstream text, trace;
    text << file.rdbuf();
    std::string error;
    const std::optional<Script> script = ParseScript(text.str(), error);
    ASSERT_TRUE(script) << entry.path() << ": " << error;
    const std::optional<std::string> failure = ScriptRunner(*script, &trace).Run();
    EXPECT_FALSE(failure) << entry.path().filename() << ": " << *failure << '\n' << trace.str();
    ++played;
  }
  EXPECT_GE(played, 10);
}

}  // namespace
}  // namespace hexad::testing
