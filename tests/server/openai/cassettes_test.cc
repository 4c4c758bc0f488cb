// Requests that real clients sent to the real service: each is taken, or refused for a named field
// that is not supported.

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "server/openai/openai_request.h"
#include "server/status.h"

namespace hexad {
namespace {

nlohmann::json ToJson(const YAML::Node& node) {
  if (node.IsMap()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& member : node) object[member.first.as<std::string>()] = ToJson(member.second);
    return object;
  }
  if (node.IsSequence()) {
    nlohmann::json array = nlohmann::json::array();
    for (const auto& entry : node) array.push_back(ToJson(entry));
    return array;
  }
  if (node.IsNull()) return nullptr;
  if (node.Tag() == "!") return node.as<std::string>();  // quoted
  bool flag = false;
  int64_t integer = 0;
  double number = 0;
  if (YAML::convert<bool>::decode(node, flag)) return flag;
  if (YAML::convert<int64_t>::decode(node, integer)) return integer;
  if (YAML::convert<double>::decode(node, number)) return number;
  return node.as<std::string>();
}

TEST(CassettesTest, RealRequestsAreTakenOrRefusedByName) {
  const char* const data = std::getenv("HEXAD_DATA");
  const std::filesystem::path archive =
      std::filesystem::path(data != nullptr ? data : "../shared/data") /
      "openai-cassettes/pydantic-ai-dev.tar.zst";
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << archive << " is not here";
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "hexad-cassettes";
  std::filesystem::create_directories(folder);
  const std::string command = "zstd -dcq --long=27 '" +
                              std::filesystem::absolute(archive).string() + "' | tar x -C '" +
                              folder.string() + "'";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "zstd or tar is missing";

  int taken = 0;
  std::map<std::string, int> refused;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".yaml") continue;
    const YAML::Node cassette = YAML::LoadFile(file.path().string());
    for (const auto& interaction : cassette["interactions"]) {
      const YAML::Node request = interaction["request"];
      if (request["uri"].as<std::string>().find("/chat/completions") == std::string::npos) continue;
      if (!request["parsed_body"]) continue;
      const std::string body = ToJson(request["parsed_body"]).dump();
      const auto parsed = ParseChatRequest(body, RequestLimits());
      if (parsed.ok()) {
        ++taken;
        continue;
      }
      const HttpError error = ToHttpError(parsed.status());
      EXPECT_EQ(error.status, 400);
      EXPECT_NE(error.message.find("support"), std::string::npos) << error.message << body;
      EXPECT_FALSE(error.param.empty());
      ++refused[error.param];
    }
  }
  std::filesystem::remove_all(folder);
  std::printf("taken %d", taken);
  for (const auto& [param, count] : refused) std::printf(", %s %d", param.c_str(), count);
  std::printf("\n");
  EXPECT_GE(taken, 5);
}

}  // namespace
}  // namespace hexad
