#include "server/config/config_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "server/config/probe.h"

namespace hexad {
namespace {

using testing::HasSubstr;

struct Outcome {
  int exit_status;
  std::string out;
  std::string err;
};

Outcome RunConfig(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_status = RunConfigCommand(args, out, err);
  return {exit_status, out.str(), err.str()};
}

const std::string kConfigs = std::string(HEXAD_SOURCE_DIR) + "/configs/";

TEST(ConfigCommandTest, Commands) {
  EXPECT_THAT(RunConfig({"print"}).out, HasSubstr("http: 127.0.0.1:8000\n"));
  EXPECT_THAT(RunConfig({"print", kConfigs + "with-keys.yaml"}).out,
              HasSubstr("tokens_per_minute: 100000\n"));
  EXPECT_THAT(RunConfig({"schema"}).out, HasSubstr("\"$schema\""));
  EXPECT_THAT(RunConfig({"explain"}).out, HasSubstr("limits.max_body (bytes"));
  EXPECT_THAT(RunConfig({"explain", "limits.max_body"}).out, HasSubstr("Default: 32MiB"));
  EXPECT_THAT(RunConfig({"check", kConfigs + "laptop.yaml"}).out, HasSubstr("laptop.yaml: ok\n"));
  EXPECT_THAT(RunConfig({"help"}).out, HasSubstr("usage: hexad config"));
  for (const char* command : {"print", "check", "explain", "schema", "probe"}) {
    EXPECT_THAT(RunConfig({command, "--help"}).out, HasSubstr("usage: hexad config")) << command;
  }
  for (const auto& args : std::vector<std::vector<std::string>>{{"print"}, {"schema"}, {"probe"}}) {
    EXPECT_EQ(RunConfig(args).exit_status, 0);
    EXPECT_EQ(RunConfig(args).err, "");
  }
}

TEST(ConfigCommandTest, Complaints) {
  const Outcome field = RunConfig({"explain", "limits.maxbody"});
  EXPECT_EQ(field.exit_status, 1);
  EXPECT_THAT(field.err, HasSubstr("did you mean limits.max_body?"));
  EXPECT_EQ(RunConfig({"check", "/nonexistent.yaml"}).exit_status, 1);
  EXPECT_EQ(RunConfig({}).exit_status, 2);
  EXPECT_EQ(RunConfig({"check"}).exit_status, 2);
  EXPECT_EQ(RunConfig({"print", "a", "b"}).exit_status, 2);
  EXPECT_THAT(RunConfig({"prnt"}).err, HasSubstr("did you mean config print?"));
}

TEST(ConfigCommandTest, ProbeNeverFails) {
  const MachineProbe probe = ProbeMachine();
  EXPECT_GE(probe.usable_cores, 1);
  EXPECT_GT(probe.memory_bytes, 0);
  EXPECT_GE(probe.memory_bytes, probe.available_memory_bytes);
  EXPECT_THAT(FormatProbe(probe), HasSubstr("gpu:          no GPU"));
}

}  // namespace
}  // namespace hexad
