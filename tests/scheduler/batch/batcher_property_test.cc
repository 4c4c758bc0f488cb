// Random scripts against the checking executor. HEXAD_SEEDS: how many (default 500).
// HEXAD_REPLAY: the path of one script to play instead, with a trace.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/scheduler/batch/random_script.h"
#include "tests/scheduler/batch/script_runner.h"

namespace hexad::testing {
namespace {

TEST(BatcherProperty, HoldsForRandomScripts) {
  if (const char* path = std::getenv("HEXAD_REPLAY")) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    std::string error;
    const std::optional<Script> script = ParseScript(text.str(), error);
    ASSERT_TRUE(script) << path << ": " << error;
    const std::optional<std::string> failure = ScriptRunner(*script, &std::cout).Run();
    EXPECT_FALSE(failure) << *failure;
    return;
  }
  const char* text = std::getenv("HEXAD_SEEDS");
  const uint64_t seeds = text ? std::strtoull(text, nullptr, 10) : 500;
  const auto start = std::chrono::steady_clock::now();
  const std::optional<SeedFailure> failure = RunSeeds(1, seeds);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::cout << seeds << " seeds, " << elapsed.count() << " s" << std::endl;
  ASSERT_FALSE(failure) << "seed " << failure->seed << ": " << failure->what
                        << "\nreplay: HEXAD_REPLAY=" << failure->log_path;
}

TEST(BatcherProperty, AScriptSurvivesItsText) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text = PrintScript(RandomScript(seed));
    std::string error;
    const std::optional<Script> script = ParseScript(text, error);
    ASSERT_TRUE(script) << error;
    EXPECT_EQ(PrintScript(*script), text);
  }
}

}  // namespace
}  // namespace hexad::testing
