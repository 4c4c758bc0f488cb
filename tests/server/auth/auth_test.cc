#include "server/auth/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/auth/key_hash.h"
#include "server/auth/keys_command.h"

namespace hexad {
namespace {

using testing::HasSubstr;

class AuthTest : public testing::Test {
 protected:
  // A keys file of this test's own.
  std::string WriteKeys(const std::string& text) {
    const std::string path = testing::TempDir() + "keys-" +
                             testing::UnitTest::GetInstance()->current_test_info()->name() +
                             ".yaml";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
    return path;
  }

  std::unique_ptr<Authenticator> Load(const std::string& path) {
    auto loaded = Authenticator::FromFile(path);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : Authenticator::Open();
  }
};

TEST_F(AuthTest, HashIsTheDocumentedOne) {
  // printf 'hexad-key-v1:hxd_test' | sha256sum
  EXPECT_EQ(FormatKeyHash(HashKey("hxd_test")),
            "sha256:4b7b061e3017381d0db59f69a45d01873ed1df64a7665d3fe4872e8ad7b4b339");
  EXPECT_EQ(ParseKeyHash(FormatKeyHash(HashKey("x"))), HashKey("x"));
  for (const char* bad : {"", "sha256:", "sha256:00", "md5:00"}) {
    EXPECT_EQ(ParseKeyHash(bad), std::nullopt);
  }
  EXPECT_EQ(ParseKeyHash("sha256:" + std::string(64, 'g')), std::nullopt);
  EXPECT_EQ(ParseKeyHash("sha256:" + std::string(66, 'a')), std::nullopt);
}

TEST_F(AuthTest, OpenGivesTheDefaultTenant) {
  const auto open = Authenticator::Open();
  for (const char* header : {"", "Bearer x", "nonsense"}) {
    const auto tenant = open->Authenticate(header);
    ASSERT_TRUE(tenant.ok());
    EXPECT_EQ(*tenant, "default");
  }
  EXPECT_TRUE(open->Reload().ok());
}

TEST_F(AuthTest, KeysNameTheirTenant) {
  const auto acme = MakeKey("acme", "ci");
  const auto other = MakeKey("other", "");
  ASSERT_TRUE(acme.ok() && other.ok());
  const auto keys = Load(WriteKeys(acme->line + "\n" + other->line + "\n"));
  EXPECT_EQ(keys->num_keys(), 2u);
  EXPECT_TRUE(keys->warnings().empty());
  for (const std::string scheme : {"Bearer ", "bearer ", "BEARER   "}) {
    const auto tenant = keys->Authenticate(scheme + acme->key);
    ASSERT_TRUE(tenant.ok()) << scheme;
    EXPECT_EQ(*tenant, "acme");
  }
  EXPECT_EQ(keys->Authenticate("Bearer " + other->key).value_or("none"), "other");
}

TEST_F(AuthTest, MissingMalformedAndWrongLookTheSame) {
  const auto made = MakeKey("acme", "");
  const auto keys = Load(WriteKeys(made->line));
  std::set<std::string> answers;
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), "Bearer x" + made->key,
        made->key, "Basic " + made->key, "Bearer " + made->key + "x", "Bearer" + made->key,
        "Bearer " + made->key.substr(1), std::string(1 << 20, 'B'), std::string("Bearer a\0b", 10),
        "Bearer " + FormatKeyHash(HashKey(made->key))}) {
    const auto tenant = keys->Authenticate(header);
    ASSERT_FALSE(tenant.ok()) << header;
    EXPECT_EQ(tenant.status().code(), absl::StatusCode::kUnauthenticated);
    answers.insert(tenant.status().ToString());
  }
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers.begin()->find(made->key), std::string::npos);
}

TEST_F(AuthTest, FilesAreReadWholeOrRefused) {
  const std::string hash = FormatKeyHash(HashKey("k"));
  const struct {
    std::string text;
    const char* problem;
  } kCases[] = {
      {"", "has no keys; make one with hexad keys new"},
      {"[]", "has no keys"},
      {"- {tenant: a}", ":1:3: [0] needs hash"},
      {"- {hash: \"" + hash + "\"}", ":1:3: [0] needs tenant"},
      {"- {tenant: a, hash: secret}", ":1:21: [0].hash must be sha256: and 64"},
      {"- {tenant: a, hash: \"" + hash + "\", admin: true}", "unknown field \"admin\""},
      {"- {tenant: \"a b\", hash: \"" + hash + "\"}", "must be 1 to 128 letters"},
      {"- {tenant: a, hash: \"" + hash + "\"}\n- {tenant: b, hash: \"" + hash + "\"}",
       ":2:21: the same key is there twice"},
      {"keys: []", "must be a list"},
  };
  for (const auto& each : kCases) {
    const std::string path = WriteKeys(each.text);
    const auto loaded = Authenticator::FromFile(path);
    ASSERT_FALSE(loaded.ok()) << each.text;
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(each.problem));
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(path));
  }
  EXPECT_FALSE(Authenticator::FromFile("/nonexistent/keys").ok());
  EXPECT_FALSE(Authenticator::FromFile("").ok());
}

TEST_F(AuthTest, ReloadKeepsTheOldKeysOnAnError) {
  const auto first = MakeKey("first", "");
  const auto second = MakeKey("second", "");
  const auto keys = Load(WriteKeys(first->line));
  WriteKeys("- broken");
  EXPECT_FALSE(keys->Reload().ok());
  EXPECT_TRUE(keys->Authenticate("Bearer " + first->key).ok());
  WriteKeys(second->line);
  EXPECT_TRUE(keys->Reload().ok());
  EXPECT_FALSE(keys->Authenticate("Bearer " + first->key).ok());
  EXPECT_TRUE(keys->Authenticate("Bearer " + second->key).ok());
}

TEST_F(AuthTest, ReloadsAndChecksRunTogether) {
  const auto made = MakeKey("acme", "");
  const auto keys = Load(WriteKeys(made->line));
  std::thread checker([&] {
    for (int i = 0; i < 2000; ++i) {
      EXPECT_TRUE(keys->Authenticate("Bearer " + made->key).ok());
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(keys->Reload().ok());
  checker.join();
}

TEST_F(AuthTest, OpenPermissionsWarn) {
  const std::string path = WriteKeys(MakeKey("a", "")->line);
  ::chmod(path.c_str(), 0644);
  const auto keys = Load(path);
  ASSERT_EQ(keys->warnings().size(), 1u);
  EXPECT_THAT(keys->warnings()[0], HasSubstr("chmod 600"));
}

TEST_F(AuthTest, KeysAreLongAndDiffer) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.insert(MakeKey("a", "")->key);
  EXPECT_EQ(keys.size(), 100u);
  EXPECT_EQ(keys.begin()->size(), 47u);
  EXPECT_TRUE(keys.begin()->starts_with("hxd_"));
  EXPECT_FALSE(MakeKey("", "").ok());
  EXPECT_FALSE(MakeKey("a\"}", "").ok());
  EXPECT_FALSE(MakeKey("a", "b c").ok());
}

TEST_F(AuthTest, CommandPrintsAKeyThatWorks) {
  const auto run = [](const std::vector<std::string>& args, std::string* text) {
    std::ostringstream out;
    std::ostringstream err;
    const int exit_status = RunKeysCommand(args, out, err);
    *text = out.str() + err.str();
    return exit_status;
  };
  std::string text;
  ASSERT_EQ(run({"new", "--tenant", "acme", "--name=ci"}, &text), 0);
  const std::string key = text.substr(text.find("hxd_"), 47);
  const auto keys = Load(WriteKeys(text.substr(text.find("- {"))));
  EXPECT_EQ(keys->Authenticate("Bearer " + key).value_or("none"), "acme");
  EXPECT_EQ(run({}, &text), 2);
  EXPECT_EQ(run({"new"}, &text), 2);
  EXPECT_EQ(run({"new", "--tenant"}, &text), 2);
  EXPECT_EQ(run({"list"}, &text), 2);
  EXPECT_EQ(run({"new", "--tenant", "a b"}, &text), 1);
  EXPECT_EQ(run({"help"}, &text), 0);
}

}  // namespace
}  // namespace hexad
